#pragma once

#include "cuda/attention/either_row.hpp"
#include "cuda/attention/strided_rows.hpp"
#include "cuda/language.hpp"
#include "cuda/one_byte.hpp"
#include "cuda/portable/score_fragments.hpp"
#include "cuda/portable/score_products.hpp"
#include "cuda/portable/tensor_cores.hpp"
#include "cuda/ptx/halves.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/ptx/thread.hpp"
#include "cuda/tile/shared_tile.hpp"
#include "kernel/configuration.hpp"

// Rows of K and V, of elements of one byte, from global to shared memory, where they have 16 bits: those
// of Q, exactly. They pass through registers, so that a tile is there when the call returns.

namespace tw_kernel {

// 8 elements as they lie in memory; zeros where there are none.
struct EightBytes {
  unsigned words[2];
  __forceinline__ void widen_to(unsigned (&pairs)[4]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const FourHalves four = widen<QElement, KvElement>(words[i]);
      pairs[2 * i] = four.low;
      pairs[2 * i + 1] = four.high;
    }
  }
};

TW_INLINE EightBytes fetch(const RowSource<KvElement>& source) {
  EightBytes eight = {};
  if (!source.is_present) return eight;
  if (kAligned) {
    const auto words = __ldg(reinterpret_cast<const unsigned long long*>(source.data));
    eight.words[0] = static_cast<unsigned>(words);
    eight.words[1] = static_cast<unsigned>(words >> 32);
  } else {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(source.data);
#pragma unroll
    for (int i = 0; i < 8; ++i) eight.words[i / 4] |= static_cast<unsigned>(bytes[i]) << (i % 4 * 8);
  }
  return eight;
}

// The same of a new row, whose elements are Q's.
struct EightOfEither {
  EightBytes stored;
  unsigned pairs[4];
  bool is_new;
  __forceinline__ void widen_to(unsigned (&to)[4]) const {
    if (!is_new) return stored.widen_to(to);
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = pairs[i];
  }
};

TW_INLINE EightOfEither fetch(const EitherSource<KvElement, QElement>& source) {
  EightOfEither eight = {};
  eight.is_new = source.is_present && source.fresh != nullptr;
  if (!eight.is_new) {
    eight.stored = fetch(RowSource<KvElement>{source.paged, source.is_present});
  } else if (kAligned) {
    const int4 pairs = __ldg(reinterpret_cast<const int4*>(source.fresh));
    eight.pairs[0] = static_cast<unsigned>(pairs.x);
    eight.pairs[1] = static_cast<unsigned>(pairs.y);
    eight.pairs[2] = static_cast<unsigned>(pairs.z);
    eight.pairs[3] = static_cast<unsigned>(pairs.w);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      eight.pairs[i] = source.fresh[2 * i].bits |
                       static_cast<unsigned>(source.fresh[2 * i + 1].bits) << 16;
    }
  }
  return eight;
}

// As load_tile. kAtOnce chunks of a thread are on their way together.
template <int kRowCount, int kDim, int kPad, typename Rows>
TW_INLINE void load_widened(unsigned tile, const Rows& rows, int count) {
  using Tile = SharedTile<kPad>;
  constexpr int kTotal = kRowCount * Tile::kChunks;
  constexpr int kAtOnce = kAligned ? 4 : 1;
  using Fetched = decltype(fetch(rows.from(0, 0).read(false)));
#pragma unroll 1
  for (int first = 0; first < kTotal; first += kAtOnce * kThreads) {
    const unsigned thread = first + thread_number<kThreads>();
    Fetched fetched[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int row = (thread + i * kThreads) / Tile::kChunks;
      const int chunk = (thread + i * kThreads) % Tile::kChunks;
      const bool exists = row < min(count, kRowCount) && (kDim == kPad || chunk < kDim / 8);
      fetched[i] = fetch(rows.from(row, chunk * 8).read(exists));
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int row = (thread + i * kThreads) / Tile::kChunks;
      const int chunk = (thread + i * kThreads) % Tile::kChunks;
      if (row >= kRowCount) continue;
      unsigned pairs[4];
      fetched[i].widen_to(pairs);
      store_shared_16(tile + Tile::offset(row, chunk), pairs[0], pairs[1], pairs[2], pairs[3]);
    }
  }
}

template <typename Rows>
TW_INLINE void load_k(unsigned tile, const Rows& rows, int count) {
  load_widened<kKvTile, kHeadDim, kHeadPad>(tile, rows, count);
}
template <typename Rows>
TW_INLINE void load_v(unsigned tile, const Rows& rows, int count) {
  load_widened<kKvTile, kValueDim, kValuePad>(tile, rows, count);
}

}  // namespace tw_kernel
