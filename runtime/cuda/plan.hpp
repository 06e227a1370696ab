#pragma once

#include "../../templates/abi/cuda_packed.hpp"
#include "../api/bindings.hpp"
#include "../call/plan_state.hpp"
#include "launch_scope.hpp"

namespace tilewright::cuda {

/// A plan in device memory, as kernels take it.
abi::cuda::PlanArguments plan_arguments(const PlanState& plan);

/// Launches the kernel that makes a plan, in the stream's order, and has the plan read from the
/// device. The first time it also clears the plan's header, whatever the memory held.
/// @throws Error with code device
void launch_plan(const LaunchScope& on, PlanState& plan, const Bindings& bindings,
                 tilewright::Stream stream);

}  // namespace tilewright::cuda
