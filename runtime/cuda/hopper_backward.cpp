#include "runtime/cuda/hopper_backward.hpp"

#include <algorithm>
#include <cstddef>

#include "base/ceil_div.hpp"
#include "generator/spec/gradients.hpp"
#include "generator/tactic/hopper_backward_tactic.hpp"
#include "runtime/cuda/backward_launch.hpp"
#include "runtime/cuda/gradient_sums.hpp"
#include "runtime/cuda/tensor_maps.hpp"

namespace tilewright::cuda {
namespace {

namespace cuda_abi = tilewright::abi::cuda;

std::int64_t row_tiles(const Shape& shape, std::int64_t rows) {
  return shape.batch * shape.num_q_heads * ceil_div(shape.q_len, rows);
}

std::int64_t fact_bytes(const Shape& shape, std::int64_t rows) {
  return cuda_abi::facts_of_tiles(row_tiles(shape, rows), rows) *
         static_cast<std::int64_t>(sizeof(float));
}

unsigned broadcast_of(const BackwardCall& call) {
  const ResolvedTensor* const tensors[] = {&call.forward.q, &call.dout, &call.forward.k,
                                           &call.forward.v};
  unsigned bits = 0, shift = 0;
  for (const ResolvedTensor* tensor : tensors) {
    if (tensor->batch_stride == 0) bits |= cuda_abi::kOneBatch << shift;
    if (tensor->head_stride == 0) bits |= cuda_abi::kOneHead << shift;
    shift += cuda_abi::kBroadcastBits;
  }
  return bits;
}

// KV heads whose Q, dO and sums of dQ fill four fifths of the L2 cache: all columns read these.
std::int64_t heads_side_by_side(const Spec& spec, const Shape& shape, std::int64_t l2_bytes) {
  constexpr std::int64_t kBytesOfElements = 2 + 2 + 4;
  const std::int64_t bytes =
      shape.num_q_heads / shape.num_kv_heads * shape.q_len * spec.head_dim * kBytesOfElements;
  return std::clamp<std::int64_t>(l2_bytes / 5 * 4 / bytes, 1, shape.batch * shape.num_kv_heads);
}

cuda_abi::HopperBackwardArguments tile_arguments(const Spec& spec, const BackwardCall& call,
                                                 const BackwardTiles& tiles,
                                                 const KernelLaunch& launch,
                                                 std::int64_t l2_bytes) {
  const Shape& shape = call.forward.shape;
  auto* const memory = static_cast<std::byte*>(call.workspace.data);
  const std::int64_t kv_heads = shape.batch * shape.num_kv_heads;
  const std::int64_t heads = heads_side_by_side(spec, shape, l2_bytes);
  return {.facts = reinterpret_cast<float*>(memory),
          .dq_sums = reinterpret_cast<float*>(memory + fact_bytes(shape, launch.q_tile)),
          .columns = tiles.columns,
          .q_tiles = static_cast<int>(ceil_div(shape.q_len, launch.q_tile)),
          .kv_tiles = static_cast<int>(ceil_div(shape.kv_len, launch.kv_box_rows)),
          .heads_in_group = static_cast<int>(heads),
          .whole_groups = static_cast<int>(kv_heads / heads),
          .broadcast = broadcast_of(call),
          .scale = static_cast<float>(call.forward.scale)};
}

// Facts of rows, and sums of dq.
std::int64_t bytes_of_tiles(const Spec& spec, const Shape& shape, std::int64_t rows) {
  return fact_bytes(shape, rows) + row_tiles(shape, rows) * rows *
                                       hopper_backward_dq_columns(spec) *
                                       static_cast<std::int64_t>(sizeof(float));
}

}  // namespace

bool hopper_backward_serves(const Spec& spec, const BackwardCall& call) {
  const Shape& shape = call.forward.shape;
  const bool has_elements = shape.batch > 0 && shape.q_len > 0 && shape.kv_len > 0;
  const bool wants_all =
      call.dq.data != nullptr && call.dk.data != nullptr && call.dv.data != nullptr;
  const bool sums_batch = (call.sums_dk || call.sums_dv) && shape.batch > 1;
  return has_elements && wants_all && !sums_batch && !call.deterministic &&
         fit_backward_maps(spec, call);
}

std::int64_t hopper_backward_workspace(const Spec& spec, const Shape& shape, std::int64_t rows,
                                       const std::vector<TensorView>& gradients) {
  std::int64_t bytes = bytes_of_tiles(spec, shape, rows);
  for (const TensorView& gradient : gradients) bytes += bytes_of_sums(gradient, false);
  return bytes;
}

std::int64_t hopper_backward_workspace(const Spec& spec, const Shape& shape, std::int64_t rows) {
  const std::int64_t of_16_bits =
      std::count_if(spec.buffers.begin(), spec.buffers.end(), [&](const auto& buffer) {
        return buffer.second.dtype != DType::f32 && has_gradient(spec, buffer.first);
      });
  const std::int64_t cells = shape.batch * shape.num_q_heads * (shape.q_len + shape.kv_len);
  return bytes_of_tiles(spec, shape, rows) +
         round_up(of_16_bits * cells * static_cast<std::int64_t>(sizeof(float)),
                  kBackwardAlignment);
}

void launch_hopper_backward(const LaunchScope& on, const BackwardCall& call,
                            const BackwardTiles& tiles, const Bindings& bindings) {
  // The kernels: entry points of hopper_backward.cu.jinja.
  const BackwardLaunch launch(on, on.facts.variants.backward, call);
  const KernelLaunch& facts = launch.launch_of(kHopperBackwardEntry);

  // The tensor maps.
  cuda_abi::BackwardMaps maps;
  make_backward_maps(on.driver, on.spec, call, facts.q_tile, facts.kv_box_rows, maps);

  // The arguments.
  const Shape& shape = call.forward.shape;
  const GradientSums sums(call, bytes_of_tiles(on.spec, shape, facts.q_tile));
  require_backward_workspace(call, sums.bytes());
  std::vector<cuda_abi::SumsArgument> sums_arguments = sums.arguments(call);
  cuda_abi::HopperBackwardArguments of_tiles =
      tile_arguments(on.spec, call, tiles, facts, on.kernels.gpu().l2_bytes);
  cuda_abi::PackedBackwardArguments of_tensors = backward_arguments(call, {});
  SnippetParameter snippet(bindings.cuda_arguments(), shape);

  // The facts of rows, and zeros in all sums.
  sums.clear(launch, call);
  const std::int64_t lanes =
      cuda_abi::lanes_of_row(static_cast<int>(on.spec.value_head_dim()),
                             static_cast<int>(size_of(on.spec.output_dtype())));
  const std::int64_t tiles_of_rows = row_tiles(shape, facts.q_tile);
  launch.plain("tilewright_backward_prepare",
               ceil_div(tiles_of_rows * facts.q_tile, cuda_abi::kPlainThreads / lanes), of_tensors,
               of_tiles, snippet);

  // dk and dv, and the sums of dq and of gradients of buffers and scalars.
  launch.tiled(kHopperBackwardEntry, of_tiles.kv_tiles * shape.num_kv_heads * shape.batch, of_tiles,
               maps, snippet, sums_arguments.front());

  // dq and these gradients, from their sums.
  launch.plain("tilewright_backward_store_dq", tiles_of_rows, of_tensors, of_tiles, snippet);
  sums.finish(launch, call);
}

}  // namespace tilewright::cuda
