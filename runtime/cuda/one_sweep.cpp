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

// The parameters of the kernels, in their order.
struct Parameters {
  cuda_abi::OneSweepArguments arguments;
  SnippetParameter snippet;
  cuda_abi::SumsArgument sums;
};

void launch_sweep(const BackwardLaunch& launch, const BackwardCall& call, bool sums_batch,
                  Parameters parameters) {
  const Shape& shape = call.forward.shape;
  const std::int64_t tiles = ceil_div(shape.kv_len, launch.launch_of(kOneSweepEntry).q_tile);
  const std::int64_t batches = sums_batch ? shape.batch : 1;
  parameters.arguments.batches_of_block = static_cast<int>(batches);
  launch.tiled(kOneSweepEntry, tiles * shape.num_kv_heads * (shape.batch / batches),
               parameters.arguments, parameters.snippet, parameters.sums);
}

// Where one of dk and dv is a sum over the batch and the other is not, each has a launch, and dq
// comes with the first.
void launch_sweeps(const BackwardLaunch& launch, const BackwardCall& call,
                   const Parameters& parameters) {
  const bool wants_dk = call.dk.data != nullptr, wants_dv = call.dv.data != nullptr;
  if (!wants_dk || !wants_dv || call.sums_dk == call.sums_dv || call.forward.shape.batch == 1) {
    const bool sums_batch = (wants_dk && call.sums_dk) || (wants_dv && call.sums_dv);
    return launch_sweep(launch, call, sums_batch, parameters);
  }
  Parameters of_dk = parameters, of_dv = parameters;
  of_dk.arguments.dv.data = nullptr;
  of_dv.arguments.dk.data = nullptr;
  of_dv.arguments.dq.data = nullptr;
  launch_sweep(launch, call, call.sums_dk, of_dk);
  launch_sweep(launch, call, call.sums_dv, of_dv);
}

}  // namespace

const Kernel* one_sweep_kernel(const LaunchScope& on) {
  return on.kernels.find(on.facts.variants.backward, kOneSweepEntry);
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
  const std::int64_t rows = launch.launch_of(kOneSweepEntry).kv_box_rows;
  require_backward_workspace(call, one_sweep_workspace(on.spec, shape, rows));
  auto* const sums = reinterpret_cast<float*>(static_cast<std::byte*>(call.workspace.data) +
                                              facts_bytes(shape));
  Parameters parameters = {.arguments = {backward_arguments(call, tiles), sums},
                           .snippet = SnippetParameter(bindings.cuda_arguments(), shape),
                           .sums = {}};

  // The facts of rows, and zeros in the sums of dq.
  launch_prepare(launch, on.spec, shape, parameters.arguments, parameters.snippet);
  const bool wants_dq = call.dq.data != nullptr;
  if (wants_dq) launch.clear(sums, sums_bytes(on.spec, shape, rows));

  // All gradients; dq from its sums.
  launch_sweeps(launch, call, parameters);
  if (!wants_dq) return;
  launch.plain("tilewright_backward_store_dq", row_tiles(shape, rows), parameters.arguments,
               parameters.snippet);
}

}  // namespace tilewright::cuda
