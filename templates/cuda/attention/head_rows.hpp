#pragma once

#include "cuda/attention/q_tile.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// The rows of a tile are one head's, one after the other.

namespace tw_kernel {

struct TileRows {
  // A thread's row i, from the sequence's first row of q, is first() + offset(i).
  __forceinline__ int first(const QTile& q_tile, int) const { return q_tile.first_row + row_of(0); }
  __forceinline__ int offset(int i) const { return row_offset(i); }
  // Its head. h: the tile's
  __forceinline__ int head(int h, int) const { return h; }
  // Drops a tile for the rows whose heads drop it. kept: a word of columns for each row
  __forceinline__ void drop_tile(const QTile&, const KvTile&, unsigned (&)[kRows]) const {}
};

}  // namespace tw_kernel
