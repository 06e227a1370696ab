#pragma once

#include "attention/dropout.hpp"
#include "attention/philox.hpp"
#include "cuda/language.hpp"
#include "kernel/engine.hpp"

// What dropout keeps of a thread's elements of a tile: bit j of word i for column j of row i.
//
// Four neighbours along kv share a call of Philox, and neighbouring lanes have them. Where quads of columns begin
// at quads of the tile, each lane draws whole quads in turn with the others, and they exchange what they keep.

namespace tw_kernel {

static_assert(kColumns <= 32, "a word holds a row");

// Bit i: column i of the quad is kept.
TW_INLINE unsigned keep_quad(const Dropout& dropout, int quad, int q_idx, int h, int b) {
  const PhiloxWords words = draw_quad(dropout, quad, q_idx, h, b);
  unsigned kept = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) kept |= static_cast<unsigned>(dropout.keeps(words.at(i))) << i;
  return kept;
}

// Each element by itself, wherever quads begin. q_idx, kv_idx: (i, j) of a thread's element
template <typename RowIndex, typename ColumnIndex>
TW_INLINE void draw_each(const Dropout& dropout, const RowIndex& q_idx, const ColumnIndex& kv_idx, int h,
                         int b, unsigned (&kept)[kRows]) {
#pragma unroll 1
  for (int element = 0; element < kRows * kColumns; ++element) {
    const int row = element % kRows, column = element / kRows;
    const int at = kv_idx(row, column);
    const PhiloxWords words = draw_quad(dropout, at >> 2, q_idx(row, column), h, b);
    const unsigned bit = static_cast<unsigned>(dropout.keeps(words.at(at & 3))) << column;
#pragma unroll
    for (int i = 0; i < kRows; ++i) kept[i] |= i == row ? bit : 0;
  }
}

// Columns of a thread that lie side by side, and lanes side by side that share a quad.
constexpr int kAdjacent = column_offset(1) == 1 ? 2 : 1;
constexpr int kColumnSharers = 4 / kAdjacent;

// kv_idx is along columns. first_kv_idx: of column 0 of the tile. q_idx(i): of a thread's row i
template <typename RowIndex>
TW_INLINE void draw_along_columns(const Dropout& dropout, int first_kv_idx, const RowIndex& q_idx, int h,
                                  int b, unsigned (&kept)[kRows]) {
  constexpr int kGroups = kColumns / kAdjacent;
  constexpr bool kShares = kGroups % kColumnSharers == 0;
#pragma unroll
  for (int i = 0; i < kRows; ++i) kept[i] = 0;
  if (!kShares || (first_kv_idx & 3) != 0) {
    draw_each(
        dropout, [&](int i, int) { return q_idx(i); },
        [&](int, int j) { return first_kv_idx + column_of(0) + column_offset(j); }, h, b, kept);
    return;
  }
  const int place = column_of(0) & 3;  // of the thread's columns in their quads
  const int rank = place / kAdjacent;
  unsigned drawn[kRows] = {};  // four bits of each quad that this lane draws
#pragma unroll 1
  for (int group = 0; group < kGroups; group += kColumnSharers) {
    const int column = column_of(0) - place + column_offset((group + rank) * kAdjacent);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const unsigned quad = keep_quad(dropout, (first_kv_idx + column) >> 2, q_idx(i), h, b);
      drawn[i] |= quad << (group * kAdjacent);
    }
  }
  constexpr unsigned kOwn = kAdjacent == 2 ? 0x33333333u : 0x11111111u;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int other = 0; other < kColumnSharers; ++other) {
      const unsigned quads = __shfl_xor_sync(~0u, drawn[i], other);
      kept[i] |= (quads >> place & kOwn) << ((rank ^ other) * kAdjacent);
    }
  }
}

// Rows of a thread that lie side by side: a whole quad, or one, whose neighbours four lanes have that are 4 apart.
constexpr bool kHasRowQuads = row_offset(1) == 1;
static_assert(!kHasRowQuads || kRows == 4, "a quad of rows");

// kv_idx is along rows. first_kv_idx: of row 0 of the block. first_q_idx: of column 0 of the tile
TW_INLINE void draw_along_rows(const Dropout& dropout, int first_kv_idx, int first_q_idx, int h, int b,
                               unsigned (&kept)[kRows]) {
  constexpr bool kShares = kHasRowQuads || kColumns % 4 == 0;
#pragma unroll
  for (int i = 0; i < kRows; ++i) kept[i] = 0;
  if (!kShares || (first_kv_idx & 3) != 0) {
    draw_each(
        dropout, [&](int, int j) { return first_q_idx + column_of(0) + column_offset(j); },
        [&](int i, int) { return first_kv_idx + row_of(0) + row_offset(i); }, h, b, kept);
  } else if constexpr (kHasRowQuads) {
#pragma unroll 1
    for (int j = 0; j < kColumns; ++j) {
      const int q_idx = first_q_idx + column_of(0) + column_offset(j);
      const unsigned quad = keep_quad(dropout, (first_kv_idx + row_of(0)) >> 2, q_idx, h, b);
#pragma unroll
      for (int i = 0; i < kRows; ++i) kept[i] |= (quad >> i & 1u) << j;
    }
  } else {
    const int rank = row_of(0) & 3;
    unsigned drawn[kRows] = {};  // four bits of each quad that this lane draws
#pragma unroll 1
    for (int group = 0; group < kColumns; group += 4) {
      const int q_idx = first_q_idx + column_of(0) + column_offset(group + rank);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int kv_idx = first_kv_idx + row_of(0) + row_offset(i);
        drawn[i] |= keep_quad(dropout, kv_idx >> 2, q_idx, h, b) << group;
      }
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int other = 0; other < 4; ++other) {
        const unsigned quads = __shfl_xor_sync(~0u, drawn[i], 4 * other);
        kept[i] |= (quads >> rank & 0x11111111u) << (rank ^ other);
      }
    }
  }
}

}  // namespace tw_kernel
