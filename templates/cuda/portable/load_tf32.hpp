#pragma once

#include "cuda/attention/strided_rows.hpp"
#include "cuda/language.hpp"
#include "cuda/portable/copy_floats.hpp"
#include "cuda/portable/score_fragments.hpp"
#include "cuda/ptx/convert.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/ptx/thread.hpp"
#include "cuda/tile/shared_tile.hpp"
#include "kernel/configuration.hpp"

// Rows of Q, K and V from global to shared memory, as floats that lie where ldmatrix finds them, and are then
// rounded there: once, where each warp that reads them would do so again.

namespace tw_kernel {

// Of the rows, the first `count` (of kRowCount) exist; the others become zeros.
template <int kRowCount, int kDim, typename Rows>
TW_INLINE void load_tile(unsigned tile, const Rows& rows, int count) {
  using Tile = SharedTile<2 * kDim>;
  constexpr int kTotal = kRowCount * Tile::kChunks;
  constexpr int kUnroll = kAligned ? 8 : 1;  // element loads would take too many registers
#pragma unroll kUnroll
  for (int id = static_cast<int>(thread_number<kThreads>()); id < kTotal; id += kThreads) {
    const int row = id / Tile::kChunks, chunk = id % Tile::kChunks;
    copy_source(tile + Tile::offset(row, chunk), rows.from(row, chunk * 4).read(row < count));
  }
}

// Rounds what this thread brought: its copies have arrived, and no other thread has seen them.
template <int kRowCount, int kDim>
TW_INLINE void round_tile(unsigned tile) {
  using Tile = SharedTile<2 * kDim>;
  constexpr int kTotal = kRowCount * Tile::kChunks;
#pragma unroll 4
  for (int id = static_cast<int>(thread_number<kThreads>()); id < kTotal; id += kThreads) {
    const unsigned chunk = tile + Tile::offset(id / Tile::kChunks, id % Tile::kChunks);
    const float4 x = load_shared_4(chunk);
    store_shared_16(chunk, to_tf32(x.x), to_tf32(x.y), to_tf32(x.z), to_tf32(x.w));
  }
}

constexpr bool kSettlesTiles = true;
TW_INLINE void settle_q(unsigned tile) { round_tile<kQTile, kHeadDim>(tile); }
TW_INLINE void settle_k(unsigned tile) { round_tile<kKvTile, kHeadDim>(tile); }
TW_INLINE void settle_v(unsigned tile) { round_tile<kKvTile, kValueDim>(tile); }

TW_INLINE void load_q(unsigned tile, const QElement* rows, long long stride, int count) {
  load_tile<kQTile, kHeadDim>(tile, StridedRows<QElement>(rows, stride), count);
}
template <typename Rows>
TW_INLINE void load_k(unsigned tile, const Rows& rows, int count) {
  load_tile<kKvTile, kHeadDim>(tile, rows, count);
}
template <typename Rows>
TW_INLINE void load_v(unsigned tile, const Rows& rows, int count) {
  load_tile<kKvTile, kValueDim>(tile, rows, count);
}

}  // namespace tw_kernel
