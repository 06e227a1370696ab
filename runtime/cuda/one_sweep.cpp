#include "runtime/cuda/one_sweep.hpp"

#include <cstddef>

#include "base/ceil_div.hpp"
#include "runtime/cuda/backward_launch.hpp"

namespace tilewright::cuda {
namespace {

namespace cuda_abi = tilewright::abi::cuda;

std::int64_t row_tiles(const Shape& shape, std::int64_t rows) {
  return shape.batch * shape.num_q_heads * ceil_div(shape.q_len, rows);
}

std::int64_t sums_bytes(const Spec& spec, const Shape& shape, std::int64_t rows) {
  constexpr std::int64_t kColumnStep = 16;
  return row_tiles(shape, rows) * rows * round_up(spec.head_dim, kColumnStep) *
         static_cast<std::int64_t>(sizeof(float));
}

}  // namespace

const Kernel* one_sweep_kernel(const LaunchScope& on) {
  return on.kernels.find(on.facts.variants.backward, kOneSweepEntry);
}

bool one_sweep_serves(const BackwardCall& call) {
  return !call.deterministic && !((call.sums_dk || call.sums_dv) && call.forward.shape.batch > 1);
}

std::int64_t one_sweep_workspace(const Spec& spec, const Shape& shape, std::int64_t rows) {
  return facts_bytes(shape) + sums_bytes(spec, shape, rows);
}

void launch_one_sweep(const LaunchScope& on, const BackwardCall& call, const BackwardTiles& tiles,
                      const Bindings& bindings) {
  // The kernels: entry points of portable_backward.cu.jinja.
  const BackwardLaunch launch(on, on.facts.variants.backward, call);

  // The arguments.
  const Shape& shape = call.forward.shape;
  const KernelLaunch& facts = launch.launch_of(kOneSweepEntry);
  const std::int64_t rows = facts.passing_rows;
  require_backward_workspace(call, one_sweep_workspace(on.spec, shape, rows));
  auto* const sums =
      reinterpret_cast<float*>(static_cast<std::byte*>(call.workspace.data) + facts_bytes(shape));
  const cuda_abi::PackedBackwardArguments of_any_layout = backward_arguments(call, tiles);
  const cuda_abi::BackwardArguments& dense = of_any_layout;
  cuda_abi::OneSweepArguments arguments = {dense, sums};
  SnippetParameter snippet(bindings.cuda_arguments(), shape);
  cuda_abi::SumsArgument none = {};

  // The facts of rows, and zeros in the sums of dq.
  launch_prepare(launch, on.spec, shape, arguments, snippet);
  const bool wants_dq = call.dq.data != nullptr;
  if (wants_dq) launch.clear(sums, sums_bytes(on.spec, shape, rows));

  // All gradients; dq from its sums.
  launch.tiled(kOneSweepEntry,
               ceil_div(shape.kv_len, facts.q_tile) * shape.num_kv_heads * shape.batch, arguments,
               snippet, none);
  if (!wants_dq) return;
  launch.plain("tilewright_backward_store_dq", row_tiles(shape, rows), arguments, snippet);
}

}  // namespace tilewright::cuda
