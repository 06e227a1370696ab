#include "runtime/cuda/split_forward.hpp"

#include "base/ceil_div.hpp"
#include "templates/abi/decode.hpp"

namespace tilewright::cuda {
namespace {

constexpr std::int64_t kCounterBytes =
    abi::plan_aligned(abi::kMostSplitBlocks * static_cast<long long>(sizeof(unsigned)));

}  // namespace

SplitLaunch split_launch(const LaunchScope& on) {
  const Kernel* const kernel =
      on.facts.variants.splits ? on.kernels.find(on.facts.variants.split, kForwardEntry) : nullptr;
  if (!kernel) return {};
  return {.multiprocessors = on.kernels.gpu().multiprocessors,
          .q_tile = kernel->launch.q_tile,
          .kv_tile = kernel->launch.kv_box_rows,
          .value_dim = on.spec.value_head_dim(),
          .work_side = on.facts.plan_work_side};
}

abi::SplitWork DenseSplit::work(std::byte* workspace) const {
  return {.partial = reinterpret_cast<float*>(workspace + kCounterBytes),
          .arrived = reinterpret_cast<unsigned*>(workspace),
          .parts = static_cast<int>(parts),
          .reserved = 0};
}

DenseSplit dense_split(const LaunchScope& on, const Shape& shape) {
  const SplitLaunch launch = split_launch(on);
  if (launch.q_tile == 0) return {};
  // Q tiles fill a mask's rows of tiles.
  const std::int64_t side = on.facts.variants.split.masked ? on.spec.block[0] : launch.q_tile;
  const std::int64_t of_head = ceil_div(shape.q_len, side) * (side / launch.q_tile);
  const std::int64_t q_tiles = of_head * shape.batch * shape.num_q_heads;
  if (q_tiles * launch.warpgroups() > abi::kMostSplitBlocks) return {};
  const std::int64_t parts = split_parts(launch, q_tiles, shape.kv_len);
  if (parts == 1) return {};
  return {.parts = parts,
          .bytes = kCounterBytes + abi::plan_aligned(launch.partial_bytes(q_tiles, parts))};
}

}  // namespace tilewright::cuda
