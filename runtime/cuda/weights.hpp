#pragma once

#include "launch_scope.hpp"

namespace tilewright::cuda {

/// Launches the kernel that writes the softmax's weights of a dense call, after forward, which
/// writes lse.
/// @param mask null: the call has none
void launch_weights(const LaunchScope& on, const ForwardCall& call, const BlockMask* mask,
                    const Bindings& bindings);

}  // namespace tilewright::cuda
