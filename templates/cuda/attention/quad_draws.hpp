#pragma once

#include "attention/dropout.hpp"
#include "attention/philox.hpp"
#include "cuda/attention/column_sum.hpp"
#include "cuda/language.hpp"
#include "kernel/engine.hpp"

// What dropout keeps of a thread's elements of a tile: bit j of word i for column j of row i.
//
// Four neighbours along kv share a call of Philox, and neighbouring lanes have them. Where quads of columns begin
// at quads of the tile, each lane draws whole quads in turn with the others, and they exchange what they keep.
// Quads need nothing of the tile, so they are drawn a few at a time between the instructions of its products.

namespace tw_kernel {

static_assert(kColumns <= 32, "a word holds a row");

// Columns of a thread that lie side by side: of four neighbours, it has so many.
constexpr int kAdjacent = column_offset(1) == 1 ? 2 : 1;
// Rows of a thread that lie side by side: a whole quad, or one, whose neighbours four lanes have that are 4 apart.
constexpr bool kHasRowQuads = row_offset(1) == 1;
static_assert(!kHasRowQuads || kRows == 4, "a quad of rows");

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

// kAlongColumns: kv_idx is along columns, else along rows.
template <bool kAlongColumns>
class QuadDraws {
 public:
  // first_kv_idx, first_q_idx: of row 0 and column 0 of the tile
  __forceinline__ QuadDraws(const Dropout& dropout, int first_kv_idx, int first_q_idx, int h, int b)
      : dropout_(dropout), h_(h), b_(b), last_dropped_(dropout.least * 256 - 1) {
    const int row = row_of(0), column = column_of(0);
    is_whole_ = kShares && (first_kv_idx & 3) == 0;
#pragma unroll
    for (int i = 0; i < kRows; ++i) kept_[i] = 0;
    if (!is_whole_) {
      draw_each(
          dropout,
          [&](int i, int j) {
            return first_q_idx + (kAlongColumns ? row + row_offset(i) : column + column_offset(j));
          },
          [&](int i, int j) {
            return first_kv_idx + (kAlongColumns ? column + column_offset(j) : row + row_offset(i));
          },
          h, b, kept_);
      last_dropped_ = ~0u;  // so quads keep nothing more
    }
    place_ = kAlongColumns ? column & 3 : kHasRowQuads ? 0 : row & 3;
    if (kAlongColumns) {
      quad_ = (first_kv_idx + column - place_ + column_offset(place_)) >> 2;
      q_idx_ = first_q_idx + row;
    } else {
      quad_ = (first_kv_idx + row) >> 2;
      q_idx_ = first_q_idx + column + column_offset(place_);
    }
  }

  // One of kParts parts of all quads, or of the first or second half of them. after: a result of the step before,
  // which the draws wait for
  template <int kParts>
  __forceinline__ void draw(int part, float after) { draw_part<kParts, 0, kQuads>(part, after); }
  template <int kParts, bool kSecond>
  __forceinline__ void draw_half(int part, float after) {
    constexpr int kMiddle = (kQuads + 1) / 2;
    draw_part<kParts, kSecond ? kMiddle : 0, kSecond ? kQuads : kMiddle>(part, after);
  }

  // 0, which ptxas knows only when the last part is drawn. It would move all draws before or after all products,
  // if nothing of a step waited for the draws of the step before, and they for nothing.
  __forceinline__ unsigned zero() const { return zero_; }

  // All of them.
  __forceinline__ void draw() {
#pragma unroll 1
    for (int group = 0; group < kQuads / kQuadRows; ++group) {
#pragma unroll
      for (int row = 0; row < kQuadRows; ++row) draw_quad_at(group, row);
    }
  }

  // All of them, several groups of columns at a time: a call of Philox waits for each of its products, and others fill
  // that time.
  __forceinline__ void draw_side_by_side() {
    static_assert(kShares && (kAlongColumns || !kHasRowQuads), "a word's four bits are of one quad");
    unsigned drawn[kRows] = {};
#pragma unroll 4
    for (int group = kQuads / kRows - 1; group >= 0; --group) {
#pragma unroll
      for (int row = 0; row < kRows; ++row) drawn[row] = drawn[row] << 4 | keeps_of(words_at(group, row));
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) kept_[i] |= drawn[i];
  }

  // What is kept, once all are drawn.
  __forceinline__ void finish(unsigned (&kept)[kRows]) {
    if (kShares && !(kHasRowQuads && !kAlongColumns)) {
#pragma unroll
      for (int step = kAlongColumns ? kAdjacent : 1; step < 4; step *= 2) exchange(step);
    }
    const unsigned all = is_whole_ && dropout_.least == 0 ? ~0u : 0u;
#pragma unroll
    for (int i = 0; i < kRows; ++i) kept[i] = kept_[i] | all;
  }

 private:
  template <int kParts, int kBegin, int kEnd>
  __forceinline__ void draw_part(int part, float after) {
    constexpr int kEach = (kEnd - kBegin + kParts - 1) / kParts;
    if (part > 0) q_idx_ += static_cast<int>(__builtin_bit_cast(unsigned, after) & zero_);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int number = kBegin + part * kEach + i;
      if (number < kEnd) draw_quad_at(number / kQuadRows, number % kQuadRows);
    }
    unsigned drawn = 0;
#pragma unroll
    for (int i = 0; i < kRows; ++i) drawn |= kept_[i];
    if (kColumns < 32) zero_ = as_one_value(drawn) >> (kColumns % 32);  // a row's bits are fewer
  }

  static constexpr bool kShares = kAlongColumns ? kColumns % 4 == 0 : kHasRowQuads || kColumns % 4 == 0;
  static constexpr int kQuads = kShares ? kRows * kColumns / 4 : 0;
  static constexpr int kQuadRows = !kAlongColumns && kHasRowQuads ? 1 : kRows;

  __forceinline__ PhiloxWords words_at(int group, int row) const {
    int quad = quad_, q_idx = q_idx_;
    if (kAlongColumns) {
      quad += column_offset(4 * group) / 4;
      q_idx += row_offset(row);
    } else if (kHasRowQuads) {
      q_idx += column_offset(group);
    } else {
      quad += row_offset(row) / 4;
      q_idx += column_offset(4 * group);
    }
    return draw_quad(dropout_, quad, q_idx, h_, b_);
  }

  // Of a quad's four elements, a bit each.
  __forceinline__ unsigned keeps_of(const PhiloxWords& words) const {
    ColumnSum kept;
#pragma unroll
    for (int i = 0; i < 4; ++i) kept.add(i, words.at(i) > last_dropped_);
    return kept.bits() & 15u;
  }

  // This lane's quad sets four bits of the row's word, from bit 4 * group on; where rows are whole quads, it sets bit
  // `group` of each row's word.
  __forceinline__ void draw_quad_at(int group, int row) {
    const PhiloxWords words = words_at(group, row);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned keeps = words.at(i) > last_dropped_ ? 1 : 0;
      if (!kAlongColumns && kHasRowQuads) {
        kept_[i % kRows] |= keeps << group;
      } else {
        kept_[row] |= keeps << (4 * group + i);
      }
    }
  }

  // Four lanes have a square of four by four bits in each four bits of a word. Two lanes whose places differ by
  // `step` swap what lies at the other's places; after steps 1 and 2 the square is transposed.
  __forceinline__ void exchange(int step) {
    const bool is_upper = (place_ & step) != 0;
    const unsigned lower = step == 1 ? 0x55555555u : 0x33333333u;
    const unsigned own = is_whole_ ? (is_upper ? ~lower : lower) : ~0u;
    const int left = is_upper ? step : 32 - step;
    const int lanes = kAlongColumns ? step / kAdjacent : 4 * step;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const unsigned given = __shfl_xor_sync(~0u, kept_[i] << left | kept_[i] >> (32 - left), lanes);
      kept_[i] = (kept_[i] & own) | (given & ~own);
    }
  }

  Dropout dropout_;
  int h_;
  int b_;
  unsigned last_dropped_;  // of words; where none is dropped, finish() corrects it
  bool is_whole_;          // quads of the tile are quads of the call
  int place_;              // of the thread's columns or rows in their quads
  int quad_;
  int q_idx_;
  unsigned kept_[kRows];
  unsigned zero_ = 0;  // see zero()
};

}  // namespace tw_kernel
