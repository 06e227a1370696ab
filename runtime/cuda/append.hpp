#pragma once

#include "../../templates/abi/append.hpp"
#include "../call/plan_state.hpp"
#include "launch_scope.hpp"

namespace tilewright::cuda {

/// Launches append.
/// @param call from resolve_append, with rows and pages
/// @param plan null: the call has slots
/// @param bindings read by the spec's k_scale and v_scale
void launch_append(const LaunchScope& on, abi::AppendArguments call, const PlanState* plan,
                   const Bindings& bindings, tilewright::Stream stream);

}  // namespace tilewright::cuda
