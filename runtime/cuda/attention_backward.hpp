#pragma once

#include <cstdint>

#include "backward.hpp"

namespace tilewright::cuda {

/// Launches backward for a dense call: the kernels that take tensor maps where they serve it, else
/// the portable ones.
/// @param mask with its transposed lists; null if the call has none
void launch_dense_backward(const LaunchScope& on, const BackwardCall& call, const BlockMask* mask,
                           const Bindings& bindings);

/// Launches backward for a packed call.
void launch_packed_backward(const LaunchScope& on, const BackwardCall& call, const PlanState& plan,
                            const Bindings& bindings);

/// Bytes of workspace of a dense call, whichever kernels serve it.
/// @param bindings null while the buffers are unknown
std::int64_t backward_workspace(const LaunchScope& on, const Shape& shape, const Bindings* bindings,
                                bool deterministic);

}  // namespace tilewright::cuda
