#pragma once

#include "../../templates/abi/cuda_packed.hpp"
#include "../api/bindings.hpp"
#include "../call/plan_state.hpp"
#include "driver.hpp"
#include "head_groups.hpp"
#include "modules.hpp"

namespace tilewright::cuda {

/// A plan in device memory, as kernels take it.
abi::cuda::PlanArguments plan_arguments(const PlanState& plan);

/// Lists of positions as the kernel that makes a plan takes them; none: all zeros.
using PositionArguments = abi::cuda::BlockMaskArguments;

/// Launches the kernel that makes a plan, in the stream's order, and has the plan read from the
/// device `ordinal`. The first time it also clears the plan's header, whatever the memory held.
/// @throws Error with code device
void launch_plan(const Driver& driver, int ordinal, const Kernel& kernel, PlanState& plan,
                 const PackedGroups& groups, const Bindings& bindings,
                 const PositionArguments& positions, Stream stream);

}  // namespace tilewright::cuda
