#pragma once

#include "cuda/attention/strided_rows.hpp"
#include "cuda/language.hpp"
#include "cuda/portable/score_fragments.hpp"
#include "cuda/portable/score_products.hpp"
#include "cuda/portable/tensor_cores.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/ptx/thread.hpp"
#include "cuda/tile/shared_tile.hpp"
#include "kernel/configuration.hpp"

// load_tensor_cores.hpp and copied_kv.hpp for rows that have fewer columns than a tile's. Few of their chunks lie at
// multiples of 16 bytes, so elements are copied one by one.

namespace tw_kernel {

// Of the rows, the first `count` (of kRowCount) exist; the others, and columns from kColumnsOfRow to kPad, become
// zeros.
template <int kRowCount, int kColumnsOfRow, int kPad, typename Rows>
TW_INLINE void load_tile(unsigned tile, const Rows& rows, int count) {
  using Tile = SharedTile<kPad>;
#pragma unroll 1
  for (int id = static_cast<int>(thread_number<kThreads>()); id < kRowCount * Tile::kChunks;
       id += kThreads) {
    const int row = id / Tile::kChunks, chunk = id % Tile::kChunks;
    const auto source = rows.from(row, chunk * 8).read(row < count && chunk * 8 < kColumnsOfRow);
    unsigned pairs[4] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (source.is_present && chunk * 8 + i < kColumnsOfRow) {
        pairs[i / 2] |= static_cast<unsigned>(source.data[i].bits) << (i % 2 * 16);
      }
    }
    store_shared_16(tile + Tile::offset(row, chunk), pairs[0], pairs[1], pairs[2], pairs[3]);
  }
}

TW_INLINE void load_q(unsigned tile, const QElement* rows, long long stride, int count) {
  load_tile<kQTile, kHeadColumns, kHeadPad>(tile, StridedRows<QElement>(rows, stride), count);
}
template <typename Rows>
TW_INLINE void load_k(unsigned tile, const Rows& rows, int count) {
  load_tile<kKvTile, kHeadColumns, kHeadPad>(tile, rows, count);
}
template <typename Rows>
TW_INLINE void load_v(unsigned tile, const Rows& rows, int count) {
  load_tile<kKvTile, kValueColumns, kValuePad>(tile, rows, count);
}

}  // namespace tw_kernel
