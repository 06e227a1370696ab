#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/tile_map.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/language.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// An item visits the tiles that the plan's map keeps for any of its heads; each row drops those that its own
// head drops.

namespace tw_kernel {

struct HeadTiles {
  const tilewright::abi::TileMap* map;

  // kept: a word of columns for each row
  __forceinline__ void drop(const QTile& q_tile, const int (&head_in_group)[kRows], const KvTile& tile,
                            unsigned (&kept)[kRows]) const {
    if (!kMasked || map->heads == 1) return;
    const int column = tile.first() / kBlockKv;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const long long row =
          static_cast<long long>(q_tile.h + head_in_group[i]) * map->rows + q_tile.mask_row;
      const unsigned tiles =
          __ldg(&map->spans[row * map->spans_of_row + column / tilewright::abi::kTilesOfSpan].kept);
      if ((tiles >> column % tilewright::abi::kTilesOfSpan & 1u) == 0) kept[i] = 0;
    }
  }
};

TW_INLINE HeadTiles head_tiles(const ForwardArguments& arguments) { return {&arguments.plan.map}; }

}  // namespace tw_kernel
