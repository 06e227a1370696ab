#include "runtime/cuda/backward.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/ceil_div.hpp"
#include "generator/spec/gradients.hpp"
#include "generator/tactic/backward_tactic.hpp"
#include "runtime/call/tensor_role.hpp"
#include "runtime/cuda/backward_launch.hpp"
#include "runtime/cuda/gradient_sums.hpp"
#include "runtime/cuda/plan.hpp"

namespace tilewright::cuda {
namespace {

namespace cuda_abi = tilewright::abi::cuda;

std::int64_t own_rows_of(const BackwardLaunch& launch) {
  return launch.launch_of("tilewright_backward_rows").q_tile;
}

// Launched side by side, where dk and dv have separate blocks.
std::int64_t parts_of_columns(const Spec& spec) {
  return splits_backward_columns(spec) ? 2 : 1;
}

// The parameters of the kernels that launch_backward launches, in their order.
struct BackwardParameters {
  cuda_abi::PackedBackwardArguments arguments;  // kernels of dense calls take the first part
  SnippetParameter snippet;
  std::vector<cuda_abi::SumsArgument> sums;
};

// dk and dv of a dense call, by columns. Where one of them is a sum over the batch and the other is
// not, each has a launch.
void launch_columns(const BackwardLaunch& launch, const Spec& spec, const BackwardCall& call,
                    BackwardParameters& parameters) {
  const Shape& shape = call.forward.shape;
  cuda_abi::PackedBackwardArguments arguments = parameters.arguments;
  const std::int64_t tiles = ceil_div(shape.kv_len, own_rows_of(launch)) * shape.num_kv_heads;
  const std::int64_t parts = parts_of_columns(spec);
  const auto run = [&](bool sums_batch) {
    arguments.batches_of_block = sums_batch ? static_cast<int>(shape.batch) : 1;
    launch.tiled("tilewright_backward_columns",
                 parts * tiles * (shape.batch / arguments.batches_of_block), arguments,
                 parameters.snippet, parameters.sums.front());
  };
  const bool wants_dk = call.dk.data != nullptr, wants_dv = call.dv.data != nullptr;
  const bool has_names = !call.gradients.empty();
  if (!wants_dk || !wants_dv || call.sums_dk == call.sums_dv || shape.batch == 1) {
    if (wants_dk || wants_dv || has_names) run(call.sums_dk || call.sums_dv);
    return;
  }
  arguments.dv.data = nullptr;
  run(call.sums_dk);
  arguments.dk.data = nullptr;
  arguments.dv.data = call.dv.data;
  arguments.gathers_columns = 0;
  run(call.sums_dv);
}

}  // namespace

std::int64_t facts_bytes(const Shape& shape) {
  return shape.batch * shape.num_q_heads * cuda_abi::facts_rows(shape.q_len) *
         static_cast<std::int64_t>(sizeof(cuda_abi::RowFacts));
}

void launch_prepare(const BackwardLaunch& launch, const Spec& spec, const Shape& shape,
                    cuda_abi::BackwardArguments& arguments, SnippetParameter& snippet) {
  const int lanes = cuda_abi::lanes_of_row(static_cast<int>(spec.value_head_dim()),
                                           static_cast<int>(size_of(spec.output_dtype())));
  launch.plain("tilewright_backward_prepare",
               ceil_div(shape.batch * shape.num_q_heads * arguments.facts_rows,
                        cuda_abi::kPlainThreads / lanes),
               arguments, snippet);
}

std::int64_t portable_bytes(const BackwardCall& call, const BackwardTiles& tiles) {
  return facts_bytes(tiles.plan == nullptr ? call.forward.shape : one_batch(tiles.plan->shape));
}

std::int64_t backward_workspace(const Shape& shape, const std::vector<TensorView>& gradients,
                                bool deterministic) {
  std::int64_t bytes = facts_bytes(shape);
  for (const TensorView& gradient : gradients) bytes += bytes_of_sums(gradient, deterministic);
  return bytes;
}

std::int64_t backward_workspace(const Spec& spec, const Shape& shape) {
  if (gradient_names(spec).empty()) return facts_bytes(shape);
  return facts_bytes(shape) +
         std::max<std::int64_t>(
             4 * shape.batch * shape.num_q_heads * shape.q_len * spec.head_dim,
             static_cast<std::int64_t>(gradient_names(spec).size()) * 64 * kBinBytes);
}

bool is_aligned(const Spec& spec, const BackwardCall& call) {
  return is_aligned(spec, call.forward) && tilewright::is_aligned(call.dout, spec.output_dtype()) &&
         tilewright::is_aligned(call.dq, spec.dtype) &&
         tilewright::is_aligned(call.dk, spec.key_value_dtype()) &&
         tilewright::is_aligned(call.dv, spec.key_value_dtype());
}

void launch_column_plan(const LaunchScope& on, const KernelVariant& variant, const PlanState& plan,
                        tilewright::Stream stream) {
  // The kernel: of the backward binary.
  const Kernel& kernel = on.kernels.kernel(variant, "tilewright_backward_plan_columns");

  // The arguments.
  const PlanGeometry& geometry = plan.geometry;
  cuda_abi::ColumnPlanArguments arguments = {
      .sequences = plan_arguments(plan).sequences,
      .columns = reinterpret_cast<abi::ColumnSequences*>(plan.memory + geometry.column_sequences),
      .tiles = geometry.column_tiles(plan.shape),
      .batch = static_cast<int>(plan.shape.batch),
      .reserved = 0};
  if (arguments.tiles == 0) return;

  // The launch.
  launch_kernel(on.driver, kernel,
                {.blocks = launchable(ceil_div(arguments.tiles, cuda_abi::kPlainThreads)),
                 .threads = cuda_abi::kPlainThreads,
                 .stream = stream,
                 .doing = "launching a plan's kernel"},
                arguments);
}

void launch_portable_sweeps(const LaunchScope& on, const KernelVariant& variant,
                            const BackwardCall& call, const BackwardTiles& tiles,
                            const Bindings& bindings, const GradientSums& sums) {
  // The kernels: entry points of portable_backward.cu.jinja.
  const BackwardLaunch launch(on, variant, call);

  // The arguments.
  const Shape& shape = call.forward.shape;
  const Shape facts_shape = tiles.plan == nullptr ? shape : one_batch(tiles.plan->shape);
  BackwardParameters parameters = {.arguments = backward_arguments(call, tiles),
                                   .snippet = SnippetParameter(bindings.cuda_arguments(), shape),
                                   .sums = sums.arguments(call)};

  // The facts of rows.
  launch_prepare(launch, on.spec, facts_shape, parameters.arguments, parameters.snippet);

  // dk and dv.
  const std::int64_t own = own_rows_of(launch);
  const bool has_names = !call.gradients.empty();
  if (tiles.plan == nullptr) {
    launch_columns(launch, on.spec, call, parameters);
  } else if (call.dk.data != nullptr || call.dv.data != nullptr || has_names) {
    launch.tiled("tilewright_backward_columns",
                 parts_of_columns(on.spec) * ceil_div(shape.kv_len, own) * shape.num_kv_heads,
                 parameters.arguments, parameters.snippet, parameters.sums.front());
  }

  // dq.
  if (call.dq.data != nullptr || has_names) {
    const std::int64_t tiles_of_head = tiles.plan == nullptr
                                           ? ceil_div(shape.q_len, own)
                                           : tiles.plan->geometry.rows * (tiles.work_side / own);
    launch.tiled("tilewright_backward_rows", tiles_of_head * facts_shape.batch * shape.num_q_heads,
                 parameters.arguments, parameters.snippet, parameters.sums.front());
  }
}

void launch_backward(const LaunchScope& on, const KernelVariant& variant, const BackwardCall& call,
                     const BackwardTiles& tiles, const Bindings& bindings) {
  const BackwardLaunch launch(on, variant, call);
  const GradientSums sums(call, portable_bytes(call, tiles));
  require_backward_workspace(call, sums.bytes());
  sums.clear(launch, call);
  launch_portable_sweeps(on, variant, call, tiles, bindings, sums);
  // The gradients of buffers and scalars, from their sums.
  sums.finish(launch, call);
}

}  // namespace tilewright::cuda
