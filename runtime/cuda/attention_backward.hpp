#pragma once

#include <cstdint>

#include "backward.hpp"

namespace tilewright::cuda {

/// Launches backward for a dense call: the kernels that take tensor maps where they serve it, else
/// the portable ones.
/// @param mask with its transposed lists; null if the call has none
void launch_dense_backward(const LaunchScope& on, const BackwardCall& call, const BlockMask* mask,
                           const Bindings& bindings);

/// Launches backward for a packed call: likewise.
void launch_packed_backward(const LaunchScope& on, const BackwardCall& call, const PlanState& plan,
                            const Bindings& bindings);

/// Launches what a plan that serves backward needs after its own kernel.
void launch_backward_plan(const LaunchScope& on, const PlanState& plan, tilewright::Stream stream);

/// Bytes of workspace of a call, whichever kernels serve it.
/// @param sequences of a packed call, whose shape is one_batch(); 0 of a dense one
/// @param bindings null while the buffers are unknown
std::int64_t backward_workspace(const LaunchScope& on, const Shape& shape, std::int64_t sequences,
                                const Bindings* bindings, bool deterministic);

}  // namespace tilewright::cuda
