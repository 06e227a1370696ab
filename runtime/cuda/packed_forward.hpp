#pragma once

#include "../../templates/abi/cuda_packed.hpp"
#include "../call/plan_state.hpp"
#include "launch_scope.hpp"

namespace tilewright::cuda {

/// The kernel that keeps k and v of short sequences, where the Attention has one for this GPU.
ResidentLaunch resident_launch(const LaunchScope& on);

/// Launches the two kernels of a packed call: decode for sequences with few rows of q, where the
/// plan has some, and forward for all others.
void launch_packed_forward(const LaunchScope& on, const ForwardCall& call, const PlanState& plan,
                           const Bindings& bindings);

}  // namespace tilewright::cuda
