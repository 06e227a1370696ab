#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/pages.hpp"
#include "attention/row_sum.hpp"
#include "attention/sink.hpp"
#include "cuda/attention/modify.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"
#include "snippet/scales.hpp"
#include "snippet/snippets.hpp"

// What stored q, k and v are multiplied by, and the sink. What a whole tile shares costs nothing in the loop:
// that of q and k joins the scale of scores, that of v joins what O is divided by. What differs between rows
// or columns multiplies each score, and each weight after the sum.

namespace tw_kernel {

using tilewright::abi::cuda::Scaling;

TW_INLINE constexpr bool scales_scores() { return kScalesScores; }
TW_INLINE constexpr bool changes_row_ends() { return kHasSink || kScalesOut || (kScalesValues && !kScalesWeights); }

// Of the rows of a thread.
struct Scales {
  Scaling scaling;                       // of the call, with what the tile shares
  float of_row[kScalesRows ? kRows : 1];
};

// A scaling whose scores are `factor` times as great. The exponent takes a positive factor, where it costs
// nothing, while products with scores stay far from float32's limits.
TW_INLINE Scaling multiplied(const Scaling& scaling, float factor) {
  const float to_log2 = scaling.to_log2 * factor;
  const bool is_usual = to_log2 >= 0x1p-40f && to_log2 <= 0x1p40f;
  if (!kHasScoreMod && is_usual) return {scaling.factor, to_log2};
  return {scaling.factor * factor, scaling.to_log2};
}

// The scaling of a tile's scores, but for what differs between its rows or columns. q_idx: of any of its rows
TW_INLINE Scaling find_scaling(const ForwardArguments& arguments, const tw_snippet::tw_State& state,
                               int b, int h, int h_kv) {
  float factor = 1.0f;
  if (!kScalesRows) factor *= tw_snippet::tw_q_scale(state, b, h, h_kv, 0);
  if (!kScalesColumns) factor *= tw_snippet::tw_k_scale(state, b, h, h_kv, 0);
  return kScalesScores ? multiplied(arguments.scaling, factor) : arguments.scaling;
}
TW_INLINE Scaling find_scaling(const ForwardArguments& arguments, const SnippetArguments& call,
                               const QTile& q_tile) {
  return find_scaling(arguments, q_tile.state(call), q_tile.b, q_tile.h, q_tile.h_kv);
}

TW_INLINE Scales find_scales(const ForwardArguments& arguments, const SnippetInputs& inputs) {
  Scales scales;
  scales.scaling = find_scaling(arguments, inputs.state, inputs.b, inputs.h, inputs.h_kv);
  if (!kScalesRows) return scales;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int row = min(inputs.rows.first(*inputs.q_tile, i) + inputs.rows.offset(i), inputs.last_row);
    scales.of_row[i] = tw_snippet::tw_q_scale(inputs.state, inputs.b, inputs.rows.head(inputs.h, i),
                                              inputs.h_kv, row + inputs.q_offset);
  }
  return scales;
}

TW_INLINE const Scaling& scaling_of(const ForwardArguments&, const Scales& scales) {
  return scales.scaling;
}

// A thread's column j of a tile, and whether its row of k and v is one of the step's new rows, which have no
// scale. Columns that do not exist have the last one's scale: theirs may be NaN, and they weigh 0.
struct ScaledColumn {
  int kv_idx;
  bool is_new;
};
TW_INLINE ScaledColumn scaled_column(const SnippetInputs& inputs, int first, int j) {
  const int column = min(first + column_of(0) + column_offset(j), inputs.kv_len - 1);
  const int context = tilewright::abi::context_of(inputs.state.q_len, inputs.kv_len);
  return {column + inputs.kv_offset, kNewRowsHaveNoScale && column >= context};
}

// first: column of the tile
TW_INLINE void scale_scores(const SnippetInputs& inputs, const Scales& scales, int first,
                            float (&s)[kRows][kColumns]) {
  if (!kScalesRows && !kScalesColumns) return;
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    float of_column = 1.0f;
    if (kScalesColumns) {
      const ScaledColumn column = scaled_column(inputs, first, j);
      if (!column.is_new) {
        of_column = tw_snippet::tw_k_scale(inputs.state, inputs.b, inputs.h, inputs.h_kv, column.kv_idx);
      }
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (kScalesRows) s[i][j] *= scales.of_row[i];
      if (kScalesColumns) s[i][j] *= of_column;
    }
  }
}

// p: weights that are summed already
TW_INLINE void scale_weights(const SnippetInputs& inputs, int first, float (&p)[kRows][kColumns]) {
  if (!kScalesWeights) return;
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    const ScaledColumn column = scaled_column(inputs, first, j);
    if (column.is_new) continue;
    const float scale =
        tw_snippet::tw_v_scale(inputs.state, inputs.b, inputs.h, inputs.h_kv, column.kv_idx);
#pragma unroll
    for (int i = 0; i < kRows; ++i) p[i][j] *= scale;
  }
}

// The end of a row of O. row: counted from the sequence's first. h: its head
TW_INLINE void finish_row(const SnippetArguments& call, const QTile& q_tile, int row, int h,
                          float divisor, RowSum& end) {
  const tw_snippet::tw_State state = q_tile.state(call);
  if (kHasSink) {
    const int q_idx = min(row, q_tile.q_len(call) - 1) + q_tile.q_offset(call);
    join_sink(tw_snippet::tw_sink(state, q_tile.b, h, q_tile.h_kv, q_idx), divisor, end);
  }
  if (kScalesValues && !kScalesWeights) {
    end.factor *= tw_snippet::tw_v_scale(state, q_tile.b, h, q_tile.h_kv, 0);
  }
  if (kScalesOut) end.factor /= tw_snippet::tw_out_scale(state, q_tile.b, h, q_tile.h_kv, 0);
}

}  // namespace tw_kernel
