#include "runtime/cuda/split_forward.hpp"

#include "templates/abi/decode.hpp"

namespace tilewright::cuda {
namespace {

constexpr std::int64_t kSplitCounterBytes =
    abi::plan_aligned(abi::kMostSplitBlocks * static_cast<long long>(sizeof(unsigned)));

}  // namespace

SplitLaunch split_launch(const LaunchScope& on) {
  const Kernel* const kernel =
      on.facts.variants.splits ? on.kernels.find(on.facts.variants.split, kForwardEntry) : nullptr;
  if (!kernel) return {};
  const std::int64_t q_tile = kernel->launch.q_tile;
  return {.multiprocessors = on.kernels.gpu().multiprocessors,
          .q_tile = q_tile,
          .kv_tile = kernel->launch.kv_box_rows,
          .value_dim = on.spec.value_head_dim(),
          .work_side = on.spec.is_packed()
                           ? on.facts.plan_work_side
                           : dense_work_side(on.spec, on.facts.variants.split, q_tile)};
}

abi::SplitWork DenseSplit::work(std::byte* workspace) const {
  return {.partial = reinterpret_cast<float*>(workspace + kSplitCounterBytes),
          .arrived = reinterpret_cast<unsigned*>(workspace),
          .parts = static_cast<int>(parts),
          .reserved = 0};
}

DenseSplit dense_split(const LaunchScope& on, const Shape& shape, std::int64_t splits) {
  const SplitLaunch launch = split_launch(on);
  if (launch.q_tile == 0) return {};
  const QTiles q_tiles = dense_q_tiles(launch, shape);
  if (q_tiles.room * launch.warpgroups() > abi::kMostSplitBlocks) return {};
  const std::int64_t parts = parts_for_splits(splits, split_parts(launch, q_tiles, shape.kv_len));
  if (parts == 1) return {};
  return {
      .parts = parts,
      .bytes = kSplitCounterBytes + abi::plan_aligned(launch.partial_bytes(q_tiles.room, parts))};
}

}  // namespace tilewright::cuda
