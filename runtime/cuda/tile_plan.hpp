#pragma once

#include <cstdint>

#include "../../templates/abi/cuda_packed_backward.hpp"
#include "../call/plan_state.hpp"
#include "launch_scope.hpp"

// What Hopper's backward kernels take of a packed call's plan.

namespace tilewright::cuda {

/// Sides of the tiles that a packed spec's kernels take from the plan.
BackwardTileSides backward_tile_sides(const LaunchScope& on);

/// Whether lengths of columns were given, so that sequences may share rows of k. Otherwise each
/// begins where the one before ends.
bool may_share_rows(const PlanState& plan);

/// Its parts of a plan's memory.
abi::cuda::PlannedColumns* planned_columns(const PlanState& plan);
abi::cuda::PlannedRowTile* planned_rows(const PlanState& plan);

/// Bytes of a row of Q, dO and sums of dQ, of so many heads: what blocks of columns read together.
std::int64_t bytes_of_backward_row(const Spec& spec, std::int64_t heads);

/// Launches what they need of a plan after its own kernel and launch_column_plan.
void launch_tile_plan(const LaunchScope& on, const PlanState& plan, tilewright::Stream stream);

}  // namespace tilewright::cuda
