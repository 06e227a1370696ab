#pragma once

#include <cstdint>

#include "head_groups.hpp"
#include "launch_scope.hpp"

namespace tilewright::cuda {

/// The q tiles of a dense call, and the order in which its launch works through them.
struct QTileGrid {
  std::int64_t of_head = 0;
  HeadGroups groups;
  std::int64_t all = 0;
};

/// @param mask null: the call has none
/// @throws Error with code tensor for more tiles than a launch takes
QTileGrid q_tile_grid(const LaunchScope& on, const Shape& shape, const Kernel& kernel,
                      const BlockMask* mask);

/// A block of threads for each tile; of a persistent kernel, for each multiprocessor at most.
std::int64_t blocks_for(const LaunchScope& on, const Kernel& kernel, std::int64_t q_tiles);

}  // namespace tilewright::cuda
