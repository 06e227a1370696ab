#pragma once

#include <optional>
#include <vector>

#include "../api/attention.hpp"
#include "forward_call.hpp"

namespace tilewright {

/// A call of backward whose tensors have been checked against the spec.
struct BackwardCall {
  ForwardCall forward;  ///< sizes, q, k, v, out, lse and scale
  ResolvedTensor dout;
  const float* dlse = nullptr;  ///< null: zeros
  ResolvedTensor dq, dk, dv;    ///< without data where they are not wanted
  bool sums_dk = false;         ///< k has batch 1: dk is the sum over the batch
  bool sums_dv = false;
  std::vector<TensorView> gradients = {};  ///< in the order of gradient_names(spec)
  bool deterministic = false;
  TensorView workspace = {};
};

/// Checks every tensor of a call, and that what is written is apart from all others.
/// @throws Error with code tensor; with code usage where the spec has no gradients
BackwardCall resolve_backward_call(const Spec& spec, const BackwardTensors& tensors,
                                   const Bindings& bindings, const GradientBuffers& gradients,
                                   const BackwardOptions& options);

/// The same of a packed call, whose sizes must be the plan's. In the call's shape q_len is total_q,
/// kv_len is total_kv, and batch the number of sequences; batch strides are 0.
/// @param plan the bytes of memory that the plan uses, which the call must not write to
/// @throws Error as above; with code usage where the options have offsets
BackwardCall resolve_packed_backward(const Spec& spec, const BackwardTensors& tensors,
                                     const PackedShape& shape, const TensorView& plan,
                                     const Bindings& bindings, const GradientBuffers& gradients,
                                     const BackwardOptions& options);

/// @throws Error with code usage where the spec names no gradients
void require_gradients(const Spec& spec);

/// A packed call as a dense one of batch 1: total_q rows of q and total_kv rows of k and v.
Shape one_batch(const PackedShape& shape);

}  // namespace tilewright
