#include "runtime/cuda/attention_backward.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "generator/spec/gradients.hpp"
#include "runtime/cuda/call_mask.hpp"
#include "runtime/cuda/hopper_backward.hpp"
#include "runtime/cuda/one_sweep.hpp"
#include "runtime/cuda/tile_plan.hpp"

namespace tilewright::cuda {
namespace {

// What gradients of buffers and scalars are like.
std::vector<TensorView> gradient_shapes(const Spec& spec, const Bindings& bindings) {
  std::vector<TensorView> shapes;
  for (const std::string& name : gradient_names(spec)) {
    const auto buffer = spec.buffers.find(name);
    const auto index = static_cast<std::size_t>(std::distance(spec.buffers.begin(), buffer));
    const bool is_buffer = buffer != spec.buffers.end();
    shapes.push_back(is_buffer
                         ? bindings.buffers()[index]
                         : TensorView::contiguous(static_cast<void*>(nullptr), DType::f32, {1}));
  }
  return shapes;
}

// The variant whose binary has the kernels of two sweeps for a dense call.
KernelVariant two_sweeps(const LaunchScope& on, bool aligned) {
  if (aligned && one_sweep_kernel(on) != nullptr) return on.facts.variants.deterministic_backward;
  return portable_backward(on, aligned);
}

}  // namespace

void launch_dense_backward(const LaunchScope& on, const BackwardCall& call, const BlockMask* mask,
                           const Bindings& bindings) {
  const CallMask lists(on, mask, CallMask::Lists::by_both);
  const BackwardTiles tiles = {.rows = lists.arguments(0), .columns = lists.columns()};
  const bool aligned = is_aligned(on.spec, call);
  if (aligned && hopper_kernel(on, call.deterministic) != nullptr &&
      hopper_backward_serves(on.spec, call)) {
    launch_hopper_backward(on, call, tiles, bindings);
  } else if (aligned && one_sweep_kernel(on) != nullptr && one_sweep_serves(call)) {
    launch_one_sweep(on, call, tiles, bindings);
  } else {
    launch_backward(on, two_sweeps(on, aligned), call, tiles, bindings);
  }
}

void launch_packed_backward(const LaunchScope& on, const BackwardCall& call, const PlanState& plan,
                            const Bindings& bindings) {
  BackwardTiles tiles = {.plan = &plan, .work_side = on.facts.plan_work_side};
  const bool aligned = is_aligned(on.spec, call);
  if (aligned && hopper_kernel(on, call.deterministic) != nullptr &&
      hopper_backward_serves(on.spec, call, plan)) {
    tiles.may_share_rows = may_share_rows(plan);
    launch_hopper_backward(on, call, tiles, bindings);
  } else {
    launch_backward(on, portable_backward(on, aligned), call, tiles, bindings);
  }
}

void launch_backward_plan(const LaunchScope& on, const PlanState& plan, tilewright::Stream stream) {
  launch_column_plan(on, portable_backward(on), plan, stream);
  launch_tile_plan(on, plan, stream);
}

std::int64_t backward_workspace(const LaunchScope& on, const Shape& shape, std::int64_t sequences,
                                const Bindings* bindings, bool deterministic) {
  const Spec& spec = on.spec;
  const std::vector<TensorView> gradients =
      bindings ? gradient_shapes(spec, *bindings) : std::vector<TensorView>();
  const std::int64_t portable = bindings ? backward_workspace(shape, gradients, deterministic)
                                         : backward_workspace(spec, shape);
  if (const Kernel* const sweep = one_sweep_kernel(on)) {
    return deterministic ? portable : one_sweep_workspace(spec, shape, sweep->launch.passing_rows);
  }
  // Calls without gradients of buffers and scalars may be deterministic whatever was asked for.
  const bool has_turns = hopper_kernel(on, true) != nullptr;
  const Kernel* const hopper = hopper_kernel(on, false);
  if (hopper == nullptr || (deterministic && !has_turns)) return portable;
  const std::int64_t rows = hopper->launch.q_tile;
  const std::int64_t turns = has_turns ? bytes_of_turns(shape, rows) : 0;
  return std::max(
      portable,
      turns + (bindings ? hopper_backward_workspace(spec, shape, sequences, rows, gradients)
                        : hopper_backward_workspace(spec, shape, sequences, rows)));
}

}  // namespace tilewright::cuda
