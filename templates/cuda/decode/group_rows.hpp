#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/language.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"
#include "kernel/head_tiles.hpp"

// The rows of a tile are those of an item's query heads, which share a head of k and v: row r is row r / group
// of q in the group's head r % group.

namespace tw_kernel {

struct TileRows {
  int q_row[kRows];          // of a thread's rows
  int head_in_group[kRows];
  HeadTiles tiles;

  __forceinline__ int first(const QTile&, int i) const { return q_row[i]; }
  __forceinline__ int offset(int) const { return 0; }
  // h: of the group's first head
  __forceinline__ int head(int h, int i) const { return h + head_in_group[i]; }
  __forceinline__ void drop_tile(const QTile& q_tile, const KvTile& tile,
                                 unsigned (&kept)[kRows]) const {
    tiles.drop(q_tile, head_in_group, tile, kept);
  }
};

// group: query heads of an item
TW_INLINE TileRows rows_of_group(const ForwardArguments& arguments, int group) {
  TileRows rows;
  rows.tiles = head_tiles(arguments);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    rows.q_row[i] = row_of(i) / group;
    rows.head_in_group[i] = row_of(i) % group;
  }
  return rows;
}

}  // namespace tw_kernel
