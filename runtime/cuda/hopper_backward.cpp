#include "runtime/cuda/hopper_backward.hpp"

#include <algorithm>
#include <cstddef>

#include "base/ceil_div.hpp"
#include "generator/spec/gradients.hpp"
#include "generator/tactic/hopper_backward_tactic.hpp"
#include "runtime/cuda/backward_launch.hpp"
#include "runtime/cuda/gradient_sums.hpp"
#include "runtime/cuda/plan.hpp"
#include "runtime/cuda/tensor_maps.hpp"
#include "runtime/cuda/tile_plan.hpp"

namespace tilewright::cuda {
namespace {

namespace cuda_abi = tilewright::abi::cuda;

// Tiles of rows of q, of all heads.
// sequences: of a packed call, 0 of a dense one
std::int64_t row_tiles(const Shape& shape, std::int64_t sequences, std::int64_t rows) {
  const std::int64_t of_head =
      sequences == 0 ? ceil_div(shape.q_len, rows)
                     : cuda_abi::planned_row_tiles(shape.q_len, sequences, static_cast<int>(rows));
  return (sequences == 0 ? shape.batch : 1) * shape.num_q_heads * of_head;
}

std::int64_t fact_bytes(std::int64_t tiles, std::int64_t rows) {
  return cuda_abi::facts_of_tiles(tiles, rows) * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t sequences_of(const BackwardTiles& tiles) {
  return tiles.plan == nullptr ? 0 : tiles.plan->shape.batch;
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
std::int64_t heads_side_by_side(const Spec& spec, const Shape& shape, std::int64_t kv_heads,
                                std::int64_t l2_bytes) {
  const std::int64_t bytes =
      shape.q_len * bytes_of_backward_row(spec, shape.num_q_heads / shape.num_kv_heads);
  return std::clamp<std::int64_t>(l2_bytes / 5 * 4 / bytes, 1, kv_heads);
}

// What is packed comes with the plan.
void add_plan(const BackwardTiles& tiles, cuda_abi::PackedHopperBackwardArguments& arguments) {
  const PlanState& plan = *tiles.plan;
  const PlanGeometry& geometry = plan.geometry;
  const cuda_abi::PlanArguments of_plan = plan_arguments(plan);
  arguments.map = of_plan.map;
  arguments.planned = planned_columns(plan);
  arguments.row_tiles = planned_rows(plan);
  arguments.sequences = of_plan.sequences;
  arguments.column_sequences =
      reinterpret_cast<const abi::ColumnSequences*>(plan.memory + geometry.column_sequences);
  arguments.shares_rows = tiles.may_share_rows ? shared_rows_flag(plan) : nullptr;
  arguments.column_side = geometry.column_side;
  arguments.total_kv = static_cast<int>(plan.shape.total_kv);
  arguments.q_tiles = static_cast<int>(geometry.count_planned_rows(plan.shape));
  arguments.kv_tiles = static_cast<int>(geometry.count_planned_columns(plan.shape));
}

cuda_abi::PackedHopperBackwardArguments tile_arguments(const Spec& spec, const BackwardCall& call,
                                                       const BackwardTiles& tiles,
                                                       const KernelLaunch& launch,
                                                       std::int64_t l2_bytes) {
  const Shape& shape = call.forward.shape;
  auto* const memory = static_cast<std::byte*>(call.workspace.data);
  const std::int64_t kv_heads = (tiles.plan == nullptr ? shape.batch : 1) * shape.num_kv_heads;
  const std::int64_t heads = heads_side_by_side(spec, shape, kv_heads, l2_bytes);
  const std::int64_t rows = launch.q_tile;
  cuda_abi::PackedHopperBackwardArguments arguments = {};
  static_cast<cuda_abi::HopperBackwardArguments&>(arguments) = {
      .facts = reinterpret_cast<float*>(memory),
      .dq_sums = reinterpret_cast<float*>(
          memory + fact_bytes(row_tiles(shape, sequences_of(tiles), rows), rows)),
      .columns = tiles.columns,
      .q_tiles = static_cast<int>(ceil_div(shape.q_len, launch.q_tile)),
      .kv_tiles = static_cast<int>(ceil_div(shape.kv_len, launch.kv_box_rows)),
      .heads_in_group = static_cast<int>(heads),
      .whole_groups = static_cast<int>(kv_heads / heads),
      .broadcast = broadcast_of(call),
      .scale = static_cast<float>(call.forward.scale)};
  if (tiles.plan != nullptr) add_plan(tiles, arguments);
  return arguments;
}

// Facts of rows, and sums of dq.
std::int64_t bytes_of_tiles(const Spec& spec, std::int64_t tiles, std::int64_t rows) {
  return fact_bytes(tiles, rows) +
         tiles * rows * hopper_backward_dq_columns(spec) * static_cast<std::int64_t>(sizeof(float));
}

const KernelVariant& variant_of(const LaunchScope& on, bool deterministic) {
  return deterministic ? on.facts.variants.deterministic_backward : on.facts.variants.backward;
}

// turns: begins with how many blocks have started
cuda_abi::OrderedHopperBackwardArguments ordered_arguments(
    const cuda_abi::HopperBackwardArguments& of_tiles, const BackwardTiles& tiles,
    std::byte* turns) {
  cuda_abi::OrderedHopperBackwardArguments arguments = {};
  static_cast<cuda_abi::HopperBackwardArguments&>(arguments) = of_tiles;
  arguments.rows = tiles.rows;
  arguments.started = reinterpret_cast<unsigned*>(turns);
  arguments.turns = reinterpret_cast<int*>(turns + sizeof(unsigned));
  return arguments;
}

// Arguments: HopperBackwardArguments, or what the kernels take in its place
template <typename Arguments>
void launch_kernels(const LaunchScope& on, const BackwardLaunch& launch, const BackwardCall& call,
                    const BackwardTiles& tiles, const Bindings& bindings, const GradientSums& sums,
                    std::int64_t tiles_of_rows, Arguments& of_tiles) {
  const Shape& shape = call.forward.shape;
  const KernelLaunch& facts = launch.launch_of(kHopperBackwardEntry);
  cuda_abi::BackwardMaps maps;
  make_backward_maps(on.driver, on.spec, call, facts.q_tile, facts.kv_box_rows, maps);
  std::vector<cuda_abi::SumsArgument> sums_arguments = sums.arguments(call);
  cuda_abi::PackedBackwardArguments of_tensors = backward_arguments(call, {});
  SnippetParameter snippet(bindings.cuda_arguments(), shape);

  // The facts of rows, and zeros in all sums.
  sums.clear(launch, call);
  const std::int64_t lanes =
      cuda_abi::lanes_of_row(static_cast<int>(on.spec.value_head_dim()),
                             static_cast<int>(size_of(on.spec.output_dtype())));
  const std::int64_t rows_of_block = cuda_abi::kPlainThreads / lanes;
  const std::int64_t rows_of_k =
      tiles.plan == nullptr ? 0 : shape.kv_len * shape.num_kv_heads;  // some have no sequence
  launch.plain("tilewright_backward_prepare",
               ceil_div(tiles_of_rows * facts.q_tile, rows_of_block) +
                   ceil_div(rows_of_k, cuda_abi::kPlainThreads),
               of_tensors, of_tiles, snippet);

  // dk and dv, and the sums of dq and of gradients of buffers and scalars.
  const std::int64_t batches = tiles.plan == nullptr ? shape.batch : 1;
  launch.tiled(kHopperBackwardEntry, of_tiles.kv_tiles * shape.num_kv_heads * batches, of_tiles,
               maps, snippet, sums_arguments.front());

  // dq and these gradients, from their sums.
  launch.plain("tilewright_backward_store_dq", tiles_of_rows, of_tensors, of_tiles, snippet);
  if (tiles.may_share_rows) {
    launch_portable_sweeps(on, portable_backward(on), call, tiles, bindings, sums);
  }
  sums.finish(launch, call);
}

}  // namespace

bool hopper_backward_serves(const Spec& spec, const BackwardCall& call) {
  const Shape& shape = call.forward.shape;
  const bool has_elements = shape.batch > 0 && shape.q_len > 0 && shape.kv_len > 0;
  const bool wants_all =
      call.dq.data != nullptr && call.dk.data != nullptr && call.dv.data != nullptr;
  const bool sums_batch = (call.sums_dk || call.sums_dv) && shape.batch > 1;
  return has_elements && wants_all && !sums_batch && fit_backward_maps(spec, call);
}

bool hopper_backward_serves(const Spec& spec, const BackwardCall& call, const PlanState& plan) {
  return hopper_backward_serves(spec, call) && !plan.positions;
}

const Kernel* hopper_kernel(const LaunchScope& on, bool deterministic) {
  return on.kernels.find(variant_of(on, deterministic), kHopperBackwardEntry);
}

KernelVariant portable_backward(const LaunchScope& on, bool aligned) {
  return variant_for(on.facts.variants.backward, aligned && hopper_kernel(on, false) == nullptr);
}

std::int64_t bytes_of_turns(const Shape& shape, std::int64_t rows) {
  return round_up(
      (1 + row_tiles(shape, 0, rows) * cuda_abi::kDqParts) * static_cast<std::int64_t>(sizeof(int)),
      kBackwardAlignment);
}

std::int64_t hopper_backward_workspace(const Spec& spec, const Shape& shape, std::int64_t sequences,
                                       std::int64_t rows,
                                       const std::vector<TensorView>& gradients) {
  std::int64_t bytes = bytes_of_tiles(spec, row_tiles(shape, sequences, rows), rows);
  for (const TensorView& gradient : gradients) bytes += bytes_of_sums(gradient, false);
  return bytes;
}

std::int64_t hopper_backward_workspace(const Spec& spec, const Shape& shape, std::int64_t sequences,
                                       std::int64_t rows) {
  const std::int64_t of_16_bits =
      std::count_if(spec.buffers.begin(), spec.buffers.end(), [&](const auto& buffer) {
        return buffer.second.dtype != DType::f32 && has_gradient(spec, buffer.first);
      });
  const std::int64_t cells = shape.batch * shape.num_q_heads * (shape.q_len + shape.kv_len);
  return bytes_of_tiles(spec, row_tiles(shape, sequences, rows), rows) +
         round_up(of_16_bits * cells * static_cast<std::int64_t>(sizeof(float)),
                  kBackwardAlignment);
}

void launch_hopper_backward(const LaunchScope& on, const BackwardCall& call,
                            const BackwardTiles& tiles, const Bindings& bindings) {
  // The kernels: entry points of hopper_backward.cu.jinja.
  const BackwardLaunch launch(on, variant_of(on, call.deterministic), call);
  const KernelLaunch& facts = launch.launch_of(kHopperBackwardEntry);

  // The arguments.
  const std::int64_t tiles_of_rows =
      row_tiles(call.forward.shape, sequences_of(tiles), facts.q_tile);
  std::int64_t bytes = bytes_of_tiles(on.spec, tiles_of_rows, facts.q_tile);
  std::byte* const turns = static_cast<std::byte*>(call.workspace.data) + bytes;
  const std::int64_t turn_bytes =
      call.deterministic ? bytes_of_turns(call.forward.shape, facts.q_tile) : 0;
  bytes += turn_bytes;
  if (tiles.may_share_rows) bytes = std::max(bytes, portable_bytes(call, tiles));
  const GradientSums sums(call, bytes);
  require_backward_workspace(call, sums.bytes());
  // Kernels of dense calls take the first part.
  cuda_abi::PackedHopperBackwardArguments of_tiles =
      tile_arguments(on.spec, call, tiles, facts, on.kernels.gpu().l2_bytes);

  // The launches.
  if (call.deterministic) {
    cuda_abi::OrderedHopperBackwardArguments ordered = ordered_arguments(of_tiles, tiles, turns);
    launch.clear(turns, turn_bytes);
    launch_kernels(on, launch, call, tiles, bindings, sums, tiles_of_rows, ordered);
  } else {
    launch_kernels(on, launch, call, tiles, bindings, sums, tiles_of_rows, of_tiles);
  }
}

}  // namespace tilewright::cuda
