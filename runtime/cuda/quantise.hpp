#pragma once

#include "../call/plan_state.hpp"
#include "../call/quantise_call.hpp"
#include "launch_scope.hpp"

namespace tilewright::cuda {

/// Launches quantise.
/// @param call from resolve_quantise, with blocks
/// @param plan null: all rows of the tensor
void launch_quantise(const LaunchScope& on, const QuantiseCall& call, const PlanState* plan,
                     const Bindings& bindings, tilewright::Stream stream);

}  // namespace tilewright::cuda
