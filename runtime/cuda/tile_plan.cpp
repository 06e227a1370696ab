#include "runtime/cuda/tile_plan.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"
#include "runtime/cuda/backward_launch.hpp"
#include "runtime/cuda/hopper_backward.hpp"
#include "runtime/cuda/plan.hpp"

namespace tilewright::cuda {
namespace {

namespace cuda_abi = tilewright::abi::cuda;

}  // namespace

std::int64_t bytes_of_backward_row(const Spec& spec, std::int64_t heads) {
  constexpr std::int64_t kBytesOfElements = 2 + 2 + 4;
  return heads * spec.head_dim * kBytesOfElements;
}

cuda_abi::PlannedColumns* planned_columns(const PlanState& plan) {
  return reinterpret_cast<cuda_abi::PlannedColumns*>(plan.memory + plan.geometry.planned_columns);
}

cuda_abi::PlannedRowTile* planned_rows(const PlanState& plan) {
  return reinterpret_cast<cuda_abi::PlannedRowTile*>(plan.memory + plan.geometry.planned_rows);
}

BackwardTileSides backward_tile_sides(const LaunchScope& on) {
  const Kernel* const kernel = on.kernels.find(on.facts.variants.backward, kHopperBackwardEntry);
  if (kernel == nullptr) return {};
  return {.columns = kernel->launch.kv_box_rows, .rows = kernel->launch.q_tile};
}

bool may_share_rows(const PlanState& plan) {
  return plan.sequences.kv_len.has_value();
}

void launch_tile_plan(const LaunchScope& on, const PlanState& plan, tilewright::Stream stream) {
  // The kernel: of the backward binary.
  const Kernel* const kernel =
      on.kernels.find(on.facts.variants.backward, "tilewright_backward_plan_tiles");
  if (kernel == nullptr) return;

  // The arguments.
  const PackedShape& shape = plan.shape;
  const PlanGeometry& geometry = plan.geometry;
  const bool looks_for_shared = may_share_rows(plan);
  const std::int64_t rows_of_group =
      on.kernels.gpu().l2_bytes / 5 * 4 /
      bytes_of_backward_row(on.spec, shape.num_q_heads / shape.num_kv_heads);
  cuda_abi::TilePlanArguments arguments = {
      .sequences = plan_arguments(plan).sequences,
      .columns = planned_columns(plan),
      .rows = planned_rows(plan),
      .shares_rows = looks_for_shared ? shared_rows_flag(plan) : nullptr,
      .column_tiles = static_cast<int>(geometry.count_planned_columns(shape)),
      .row_tiles = static_cast<int>(geometry.count_planned_rows(shape)),
      .batch = static_cast<int>(shape.batch),
      .q_rows_of_group = static_cast<int>(
          std::clamp<std::int64_t>(rows_of_group, 1, std::max<std::int64_t>(1, shape.total_q)))};
  if (looks_for_shared) {
    on.driver.check(on.driver.functions().fill_bytes(device_pointer(shared_rows_flag(plan)), 0,
                                                     sizeof(int), static_cast<Stream>(stream)),
                    "clearing a plan's flag");
  }

  // The launch.
  const std::int64_t threads =
      std::int64_t{arguments.column_tiles} + arguments.row_tiles + arguments.batch;
  launch_kernel(on.driver, *kernel,
                {.blocks = launchable(ceil_div(threads, cuda_abi::kPlainThreads)),
                 .threads = cuda_abi::kPlainThreads,
                 .stream = stream,
                 .doing = "launching a plan's kernel"},
                arguments);
}

}  // namespace tilewright::cuda
