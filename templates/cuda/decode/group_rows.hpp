#pragma once

#include "abi/tile_map.hpp"
#include "cuda/attention/place.hpp"
#include "cuda/language.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// The rows of a tile are those of the query heads that share a head of k and v: row r is row r / group of q
// in the group's head r % group.

namespace tw_kernel {

// Drops a tile for the rows whose heads' map drops it. kept: a word of columns for each row.
TW_INLINE void drop_for_heads(const tilewright::abi::TileMap& map, const Place& place,
                              const int (&head_in_group)[kRows],
                              const KvTile& tile, unsigned (&kept)[kRows]) {
  if (!kMasked || map.heads == 1) return;
  const int column = tile.first() / kBlockKv;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const long long row =
        static_cast<long long>(place.h + head_in_group[i]) * map.rows + place.mask_row;
    const unsigned tiles =
        __ldg(&map.spans[row * map.spans_of_row + column / tilewright::abi::kTilesOfSpan].kept);
    if ((tiles >> column % tilewright::abi::kTilesOfSpan & 1u) == 0) kept[i] = 0;
  }
}

struct TileRows {
  int q_row[kRows];          // of a thread's rows
  int head_in_group[kRows];
  const tilewright::abi::TileMap* map;

  __forceinline__ int first(const Place&, int i) const { return q_row[i]; }
  __forceinline__ int offset(int) const { return 0; }
  // h: of the group's first head
  __forceinline__ int head(int h, int i) const { return h + head_in_group[i]; }
  __forceinline__ void drop_tile(const Place& place, const KvTile& tile,
                                 unsigned (&kept)[kRows]) const {
    drop_for_heads(*map, place, head_in_group, tile, kept);
  }
};

// group: query heads of a head of k and v
TW_INLINE TileRows rows_of_group(int group, const tilewright::abi::TileMap& map) {
  TileRows rows;
  rows.map = &map;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    rows.q_row[i] = row_of(i) / group;
    rows.head_in_group[i] = row_of(i) % group;
  }
  return rows;
}

}  // namespace tw_kernel
