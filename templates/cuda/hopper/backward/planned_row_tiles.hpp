#pragma once

#include "abi/cuda_packed_backward.hpp"
#include "cuda/hopper/backward/dq_tile.hpp"
#include "cuda/hopper/backward/planned_columns.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"

// Rows of q in tiles, in a packed call: each sequence's begin with a tile.

namespace tw_kernel {

using tilewright::abi::cuda::BackwardArguments;

// number: of the tile, counted over all heads
TW_INLINE bool has_dq_tile(const HopperBackwardArguments& tiles, long long number) {
  return !leaves_to_portable(tiles) && tiles.row_tiles[number % tiles.q_tiles].count > 0;
}

TW_INLINE DqTile find_dq_tile(const HopperBackwardArguments& tiles, const SnippetArguments&, long long number) {
  const tilewright::abi::cuda::PlannedRowTile tile = tiles.row_tiles[number % tiles.q_tiles];
  return {0, static_cast<int>(number / tiles.q_tiles), tile.begin, tile.begin + tile.count};
}

}  // namespace tw_kernel
