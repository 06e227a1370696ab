#pragma once

#include "cuda/attention/strided_rows.hpp"
#include "cuda/language.hpp"
#include "cuda/portable/score_fragments.hpp"
#include "cuda/portable/score_products.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/ptx/thread.hpp"
#include "cuda/tile/copy_chunk.hpp"
#include "cuda/tile/shared_tile.hpp"
#include "kernel/configuration.hpp"

// Rows of Q, and of K and V of its type, from global to shared memory, for tensor cores.

namespace tw_kernel {

// 8 elements one by one; zeros where there are none.
template <typename Element>
TW_INLINE void copy_elements(unsigned to, const Element* from, bool present) {
  unsigned pair[4] = {};
  if (present) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      pair[i] = from[2 * i].bits | static_cast<unsigned>(from[2 * i + 1].bits) << 16;
    }
  }
  store_shared_16(to, pair[0], pair[1], pair[2], pair[3]);
}

// Of the rows, the first `count` (of kRowCount) exist; the others, and columns from kDim to kPad, become
// zeros.
template <int kRowCount, int kDim, int kPad, typename Element, typename Rows>
TW_INLINE void load_tile(unsigned tile, const Rows& rows, int count) {
  using Tile = SharedTile<kPad>;
  constexpr int kTotal = kRowCount * Tile::kChunks;
  constexpr bool kWholeRows = kThreads % Tile::kChunks == 0;  // a thread stays in its column
  constexpr int kRowStep = kThreads / Tile::kChunks;
  constexpr int kCopies = (kTotal + kThreads - 1) / kThreads;
  constexpr int kUnroll = kAligned ? kCopies : 1;  // element loads would take too many registers
  const unsigned thread = thread_number<kThreads>();
  const unsigned first_row = thread / Tile::kChunks;
  const unsigned first_chunk = thread % Tile::kChunks;
  const unsigned first_to = tile + Tile::offset(first_row, first_chunk);
  auto from = rows.from(first_row, first_chunk * 8);
#pragma unroll kUnroll
  for (int i = 0; i < kCopies; ++i) {
    const unsigned id = i * kThreads + thread;
    const unsigned row = kWholeRows ? first_row + i * kRowStep : id / Tile::kChunks;
    const unsigned chunk = kWholeRows ? first_chunk : id % Tile::kChunks;
    if (kTotal % kThreads == 0 || id < kTotal) {
      const bool exists = static_cast<int>(row) < count && (kDim == kPad || chunk < kDim / 8);
      const RowSource<Element> source =
          kWholeRows ? from.read(exists) : rows.from(row, chunk * 8).read(exists);
      const unsigned to = kWholeRows && kRowStep % Tile::kPeriod == 0
                              ? first_to + i * kRowStep * Tile::kRowBytes
                              : tile + Tile::offset(row, chunk);
      if (kAligned) {
        copy_chunk(rows, to, source.data, source.is_present ? 16 : 0);
      } else {
        copy_elements(to, source.data, source.is_present);
      }
    }
    from.advance(kRowStep);
  }
}

TW_INLINE void load_q(unsigned tile, const QElement* rows, long long stride, int count) {
  load_tile<kQTile, kHeadDim, kHeadPad, QElement>(tile, StridedRows<QElement>(rows, stride), count);
}

}  // namespace tw_kernel
