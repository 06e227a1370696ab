#include "runtime/cuda/q_tile_grid.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"

namespace tilewright::cuda {

QTileGrid q_tile_grid(const LaunchScope& on, const Shape& shape, const Kernel& kernel,
                      const BlockMask* mask) {
  const std::int64_t q_tile = kernel.launch.q_tile;
  QTileGrid grid{.of_head = ceil_div(shape.q_len, q_tile),
                 .groups = head_groups(on.spec, shape, on.kernels.gpu().l2_bytes)};
  if (mask) {
    const std::int64_t side = mask->block()[0];
    if (side >= q_tile) grid.of_head = mask->q_blocks() * (side / q_tile);
  }
  grid.all = launchable_q_tiles(grid.of_head * shape.batch * shape.num_q_heads);
  return grid;
}

std::int64_t blocks_for(const LaunchScope& on, const Kernel& kernel, std::int64_t q_tiles) {
  const std::int64_t multiprocessors = on.kernels.gpu().multiprocessors;
  return kernel.launch.is_persistent ? std::min(q_tiles, multiprocessors) : q_tiles;
}

}  // namespace tilewright::cuda
