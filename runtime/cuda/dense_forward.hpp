#pragma once

#include "launch_scope.hpp"

namespace tilewright::cuda {

/// Launches forward for a dense call.
/// @param mask null: the call has none
void launch_dense_forward(const LaunchScope& on, const ForwardCall& call, const BlockMask* mask,
                          const Bindings& bindings);

}  // namespace tilewright::cuda
