#pragma once

#include <optional>

#include "../api/attention.hpp"

namespace tilewright {

/// Refuses a call that writes to memory which it also reads, or twice: out and lse share no byte
/// with q, k, v, a buffer or each other. They may interleave, as slices of one allocation do. out
/// may be q itself, with the same data, shape, strides and size of an element: each kernel reads a
/// row of q only while it computes the same row of out, and before it writes that.
/// @param tensors that resolve_call took
/// @param bindings that were checked against the spec
/// @throws Error with code tensor, naming both tensors and their bytes
void require_written_apart(const Spec& spec, const ForwardTensors& tensors,
                           const Bindings& bindings);

/// Refuses a dense call whose workspace shares a byte with one of its tensors or buffers.
/// @param workspace the bytes that the call uses
/// @throws Error as above
void require_workspace_apart(const Spec& spec, const ForwardTensors& tensors,
                             const Bindings& bindings, const TensorView& workspace);

/// Refuses a packed call whose out or lse shares a byte with what its plan lends it: the workspace,
/// and the page_table of paged k and v.
/// @param workspace the bytes that the plan uses
/// @throws Error as above
void require_apart_from_plan(const ForwardTensors& tensors, const TensorView& workspace,
                             const std::optional<TensorView>& page_table);

/// Refuses a plan whose workspace shares a byte with a tensor that each build reads: one of the
/// sequences, or a buffer.
/// @throws Error as above
void require_plan_apart(const Spec& spec, const TensorView& workspace, const Sequences& sequences,
                        const Bindings& bindings);

}  // namespace tilewright
