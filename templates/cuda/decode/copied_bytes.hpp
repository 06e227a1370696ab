#pragma once

#include "cuda/attention/strided_rows.hpp"
#include "cuda/decode/one_byte_products.hpp"
#include "cuda/language.hpp"
#include "cuda/portable/score_fragments.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/ptx/thread.hpp"
#include "cuda/tile/copy_chunk.hpp"
#include "kernel/configuration.hpp"

// Rows of K and V, of elements of one byte, from global to shared memory as they are.

namespace tw_kernel {

// `bytes` one by one, and zeros up to 16.
TW_INLINE void copy_bytes(unsigned to, const KvElement* from, int bytes) {
  unsigned words[4] = {};
  const auto* const of = reinterpret_cast<const unsigned char*>(from);
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    if (i < bytes) words[i / 4] |= static_cast<unsigned>(of[i]) << (i % 4 * 8);
  }
  store_shared_16(to, words[0], words[1], words[2], words[3]);
}

// Of the rows, the first `count` (of kRowCount) exist; the others, and columns from kDim to kPad, become
// zeros. By a warp, whose lanes read together.
template <int kRowCount, int kDim, int kPad, typename Rows>
TW_INLINE void load_bytes(unsigned tile, const Rows& rows, int count) {
  using Tile = BytesTile<kPad>;
  constexpr int kChunks = Tile::kChunks, kCopies = kRowCount * kChunks / kThreads;
  static_assert(kRowCount * kChunks % kThreads == 0, "every lane has as many chunks");
  const unsigned thread = thread_number<kThreads>();
#pragma unroll
  for (int i = 0; i < kCopies; ++i) {
    const int id = static_cast<int>(i * kThreads + thread);
    const int row = id / kChunks, column = id % kChunks * 16;
    const int width = kDim % 16 == 0 ? 16 : min(16, kDim - column);
    const bool exists = row < count && (kDim == kPad || column < kDim);
    const RowSource<KvElement> source = rows.from(row, column).read(exists);
    const unsigned to = tile + Tile::offset(row, column / 16);
    const int bytes = source.is_present ? width : 0;
    if (kAligned) {
      copy_chunk(rows, to, source.data, bytes);
    } else {
      copy_bytes(to, source.data, bytes);
    }
  }
}

template <typename Rows>
TW_INLINE void load_k(unsigned tile, const Rows& rows, int count) {
  load_bytes<kKvTile, kHeadDim, kHeadPad>(tile, rows, count);
}
template <typename Rows>
TW_INLINE void load_v(unsigned tile, const Rows& rows, int count) {
  load_bytes<kKvTile, kValueDim, kValuePad>(tile, rows, count);
}

}  // namespace tw_kernel
