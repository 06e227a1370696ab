#include "runtime/call/split_parts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "templates/abi/splits.hpp"

namespace tilewright {
namespace {

constexpr std::int64_t kMostParts = 32;
// Items that a multiprocessor has at most. It bounds the workspace: 28 MB at v_head_dim 128.
constexpr std::int64_t kMostItems = 3;
constexpr std::int64_t kMostQTiles = std::int64_t{1} << 32;  // more than a launch may have

// The time of a call, in units of a kv tile's. An item takes two to begin and end. Storing a part
// takes one, and reading all parts one for each.
std::int64_t cost_of(const SplitLaunch& launch, std::int64_t q_tiles, std::int64_t kv_tiles,
                     std::int64_t parts) {
  constexpr std::int64_t kOfItem = 2;
  const std::int64_t waves = ceil_div(q_tiles * parts, launch.multiprocessors);
  return waves * (ceil_div(kv_tiles, parts) + kOfItem) + (parts > 1 ? parts + 1 : 0);
}

}  // namespace

void require_splits(std::int64_t splits) {
  if (splits >= 0) return;
  throw Error(ErrorCode::usage, fmt::format("splits is {}", splits),
              "give a number of parts, or 0: then the call's sizes say");
}

std::int64_t blocks_for_splits(std::int64_t splits, std::int64_t items, std::int64_t blocks) {
  if (splits == 0 || splits >= blocks) return blocks;
  return std::clamp<std::int64_t>(splits * items, 1, blocks);
}

std::int64_t parts_for_splits(std::int64_t splits, std::int64_t parts) {
  return splits == 0 ? parts : std::min(splits, parts);
}

std::int64_t SplitLaunch::partial_bytes(std::int64_t q_tiles, std::int64_t parts) const {
  return abi::split_partial_bytes(q_tiles, parts, warpgroups(), round_up(value_dim, 16));
}

std::int64_t dense_work_side(const Spec& spec, const KernelVariant& kernel, std::int64_t q_tile) {
  return kernel.masked ? spec.block[0] : q_tile;
}

QTiles dense_q_tiles(const SplitLaunch& launch, const Shape& shape) {
  const std::int64_t of_head =
      ceil_div(shape.q_len, launch.work_side) * (launch.work_side / launch.q_tile);
  const std::int64_t heads = shape.batch * shape.num_q_heads;
  const std::int64_t all = of_head > kMostQTiles / heads ? kMostQTiles : of_head * heads;
  return {all, all};
}

QTiles packed_q_tiles(const SplitLaunch& launch, const PackedShape& shape, std::int64_t row_side,
                      std::int64_t rows) {
  const std::int64_t of_row = launch.work_side / launch.q_tile * shape.num_q_heads;
  // Of each sequence only the last row of tiles has fewer rows of q.
  const std::int64_t most = (shape.total_q + shape.batch * (row_side - 1)) / row_side;
  return {std::min(most, rows) * of_row, rows * of_row};
}

bool has_room_for_parts(const SplitLaunch& launch, QTiles q_tiles, std::int64_t parts) {
  return q_tiles.room * parts <= kMostItems * launch.multiprocessors;
}

std::int64_t split_parts(const SplitLaunch& launch, QTiles q_tiles, std::int64_t kv_len) {
  if (launch.q_tile == 0 || q_tiles.most == 0) return 1;
  const std::int64_t kv_tiles = ceil_div(kv_len, launch.kv_tile);
  const std::int64_t whole = cost_of(launch, q_tiles.most, kv_tiles, 1);
  std::int64_t best = 1, least = whole * 7 / 8;  // the costs are estimates: less gain is none
  for (std::int64_t parts = 2; parts <= kMostParts; ++parts) {
    if (!has_room_for_parts(launch, q_tiles, parts)) break;
    const std::int64_t cost = cost_of(launch, q_tiles.most, kv_tiles, parts);
    if (cost > least || (best > 1 && cost == least)) continue;
    least = cost;
    best = parts;
  }
  return best;
}

}  // namespace tilewright
