#pragma once

#include "cuda/attention/column_sum.hpp"
#include "cuda/attention/no_differences.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/attention/split_index.hpp"
#include "cuda/language.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"
#include "kernel/tile_rows.hpp"
#include "snippet/snippets.hpp"

// The snippets over a thread's scores of one tile.

namespace tw_kernel {

// What the snippets see of a call and a q tile.
struct SnippetInputs {
  tw_snippet::tw_State state;
  int b;
  int h;
  int h_kv;
  const QTile* q_tile;                      // in shared memory
  const tw_snippet::tw_Loads* head_loads;  // likewise, where registers are few
  int last_row;                            // of the sequence
  int q_offset;
  int kv_offset;
  int kv_len;
  TileRows rows;
};

// What the snippets read of their buffers for the whole head.
TW_INLINE tw_snippet::tw_Loads load_for_head(const SnippetArguments& call, const QTile& q_tile) {
  return tw_snippet::tw_load_for_head(q_tile.state(call), q_tile.b, q_tile.h, q_tile.h_kv);
}

TW_INLINE SnippetInputs snippet_inputs(const SnippetArguments& call, const QTile& q_tile,
                                   const tw_snippet::tw_Loads& head_loads,
                                   const TileRows& rows = {}) {
  return {q_tile.state(call),
          q_tile.b,
          q_tile.h,
          q_tile.h_kv,
          &q_tile,
          &head_loads,
          q_tile.q_len(call) - 1,
          q_tile.q_offset(call),
          q_tile.kv_offset(call),
          q_tile.kv_len(call),
          rows};
}

// An index that is clamped to `last` where kBoundsIndices. kInside: all are in bounds. Offsets that are not
// clamped are constants, and what several elements share is computed once.
template <bool kInside>
TW_INLINE SplitIndex make_split_index(int first, int offset, int last, int offset_of_call) {
  if (kInside || !kBoundsIndices) return {first + offset_of_call, offset};
  return {min(first + offset, last) + offset_of_call, 0};
}

// q_idx of a thread's rows. Rows after the last one are not stored. Found again for every tile,
// see thread_number.
struct RowIndices {
  SplitIndex q_idx[kRows];
};

template <bool kInside>
TW_INLINE RowIndices find_row_indices(const SnippetInputs& inputs) {
  RowIndices rows;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    rows.q_idx[i] = make_split_index<kInside>(inputs.rows.first(*inputs.q_tile, i),
                                              inputs.rows.offset(i), inputs.last_row, inputs.q_offset);
  }
  return rows;
}

// What the snippets read for one row of the tile, whatever the column, and the other way round.
using RowLoads = tw_snippet::tw_LaneLoads<kRows>;

TW_INLINE RowLoads load_for_rows(const SnippetInputs& inputs, const RowIndices& rows) {
  RowLoads loads;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    loads.load(i, inputs.state, inputs.b, inputs.rows.head(inputs.h, i), inputs.h_kv,
               rows.q_idx[i].value(), 0);
  }
  return loads;
}

TW_INLINE tw_snippet::tw_Loads load_for_column(const SnippetInputs& inputs,
                                               const tw_snippet::tw_Loads& head_loads, int kv_idx) {
  return tw_snippet::tw_load_for_column(head_loads, inputs.state, inputs.b, inputs.h, inputs.h_kv,
                                        kv_idx);
}

// kv_idx of a thread's column j. column: its column 0.
template <bool kInside>
TW_INLINE SplitIndex find_column_index(const SnippetInputs& inputs, int column, int j) {
  return make_split_index<kInside>(column, column_offset(j), inputs.kv_len - 1, inputs.kv_offset);
}

// kInside: all rows and columns of the tile exist. kLoadsInBounds: tw_loads_in_bounds holds for them.
// differences: the elements' values by the difference of indices
template <bool kInside, bool kLoadsInBounds = false, typename Differences = NoDifferences>
TW_INLINE void modify_scores(const SnippetInputs& inputs, int first, float scale,
                             float (&s)[kRows][kColumns], Differences differences = {}) {
  using tw_snippet::tw_ColumnIndex;
  using tw_snippet::tw_RowIndex;
  const RowIndices rows = find_row_indices<kInside>(inputs);
  const RowLoads row_loads = load_for_rows(inputs, rows);
  const tw_snippet::tw_Loads head_loads = *inputs.head_loads;
  const int column = first + column_of(0);
  const int origin = first + inputs.kv_offset;
  tw_RowIndex q_idx[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) q_idx[i] = make_index<tw_RowIndex>(rows.q_idx[i], origin);
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    const auto kv_idx =
        make_index<tw_ColumnIndex>(find_column_index<kInside>(inputs, column, j), origin);
    const tw_snippet::tw_Loads column_loads = load_for_column(inputs, head_loads, kv_idx);
    differences.advance(j);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      s[i][j] = tw_snippet::tw_score_mod<kLoadsInBounds>(
          inputs.state, row_loads.with_lane(column_loads, i), s[i][j] * scale, inputs.b,
          inputs.rows.head(inputs.h, i), inputs.h_kv, q_idx[i], kv_idx, differences.of(i, j));
    }
  }
}

// Which elements of a tile take part: bit j of word i is for column j of row i. It needs no scores,
// so it is found while K is on its way.
struct Kept {
  unsigned word[kRows];
};
static_assert(kColumns <= 32, "a word of Kept holds a row");

// Columns that mask_mod is compiled for at once; all of them would cost most of the compile time,
// and registers that the matrix products need. Even, so that a group's offsets add up, or 1.
TW_INLINE constexpr int mask_group() {
  constexpr int kMost = ColumnSum::kMostColumns;
  for (int size = kMaskUnroll < kMost ? kMaskUnroll : kMost; size > 1; --size) {
    if (size % 2 == 0 && kColumns % size == 0) return size;
  }
  return 1;
}
constexpr int kMaskGroup = mask_group();

TW_INLINE Kept evaluate_mask(const SnippetInputs& inputs, int first) {
  const RowIndices rows = find_row_indices<false>(inputs);
  const RowLoads row_loads = load_for_rows(inputs, rows);
  const tw_snippet::tw_Loads head_loads = *inputs.head_loads;
  Kept kept = {};
#pragma unroll 1
  for (int group = 0; group < kColumns; group += kMaskGroup) {
    const int column = first + column_of(0) + column_offset(group);
    ColumnSum columns[kRows];
#pragma unroll
    for (int j = 0; j < kMaskGroup; ++j) {
      const int kv_idx = find_column_index<false>(inputs, column, j).value();
      const tw_snippet::tw_Loads column_loads = load_for_column(inputs, head_loads, kv_idx);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const bool keep =
            tw_snippet::tw_mask_mod(inputs.state, row_loads.with_lane(column_loads, i), inputs.b,
                                    inputs.rows.head(inputs.h, i), inputs.h_kv, rows.q_idx[i].value(),
                                    kv_idx);
        columns[i].add(j, keep);
      }
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) kept.word[i] |= columns[i].bits() << group;
  }
  return kept;
}

// Drops the columns from kv_len on.
TW_INLINE void bound_columns(const SnippetInputs& inputs, int first, Kept& kept) {
  const int column = first + column_of(0);
  unsigned inside = 0;
#pragma unroll 1
  for (int j = 0; j < kColumns; ++j) {
    inside |= static_cast<unsigned>(column + column_offset(j) < inputs.kv_len) << j;
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) kept.word[i] &= inside;
}

// Drops the columns from kv_len on, as drop() does.
TW_INLINE void drop_columns(const SnippetInputs& inputs, int first, float instead,
                            float (&s)[kRows][kColumns]) {
  const int left = inputs.kv_len - (first + column_of(0));
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) s[i][j] = column_offset(j) < left ? s[i][j] : instead;
  }
}

TW_INLINE Kept find_kept(const SnippetInputs& inputs, const KvTile& tile) {
  Kept kept;
  if (kHasMaskMod && tile.partial()) {
    kept = evaluate_mask(inputs, tile.first());
  } else {
#pragma unroll
    for (int i = 0; i < kRows; ++i) kept.word[i] = ~0u;
  }
  if (tile.first() + kKvTile > inputs.kv_len) bound_columns(inputs, tile.first(), kept);
  inputs.rows.drop_tile(*inputs.q_tile, tile, kept.word);
  return kept;
}

// Drops the elements of a tile that take no part. instead: -infinity where s holds scores, 0 where it
// holds weights.
TW_INLINE void drop(const Kept& kept, float instead, float (&s)[kRows][kColumns]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      s[i][j] = (kept.word[i] >> j & 1u) != 0 ? s[i][j] : instead;
    }
  }
}

}  // namespace tw_kernel
