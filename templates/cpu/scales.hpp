#pragma once

#include "abi/pages.hpp"
#include "attention/row_sum.hpp"
#include "attention/sink.hpp"
#include "cpu/inline.hpp"
#include "cpu/modify.hpp"
#include "cpu/vector.hpp"
#include "snippet/scales.hpp"
#include "snippet/snippets.hpp"

// What stored q, k and v are multiplied by, and the sink. What a whole q tile shares costs nothing in the loop:
// that of q and k joins the scale of scores, that of v joins what O is divided by. What differs between rows
// or columns multiplies each score, and each weight after the sum.

namespace tw_kernel {

// The scale of an item's scores, but for what differs between its rows or columns.
TW_INLINE float find_scale(const tw_snippet::tw_State& state, const ChunkPlace& place, float scale) {
  if (!kScalesRows) scale *= tw_snippet::tw_q_scale(state, place.b, place.h, place.h_kv, 0);
  if (!kScalesColumns) scale *= tw_snippet::tw_k_scale(state, place.b, place.h, place.h_kv, 0);
  return scale;
}

// Whether a column's row of k and v is one of the step's new rows, which have no scale.
TW_INLINE bool is_new_row(const tw_snippet::tw_State& state, int column) {
  return kNewRowsHaveNoScale &&
         column >= tilewright::abi::context_of(state.q_len, state.kv_len);
}

// s: [count][kLanes], scores of a chunk of rows. first: column of the tile
TW_NOINLINE void scale_scores(const tw_snippet::tw_State& shared_state, const ChunkPlace& place,
                              int first, int count, float* s) {
  if (!kScalesRows && !kScalesColumns) return;
  const tw_snippet::tw_State state = shared_state;  // which stores to s cannot alias
  const int b = place.b, h = place.h, h_kv = place.h_kv;
  float of_row[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    const int row = place.first_row + lane < place.last_row ? place.first_row + lane : place.last_row;
    of_row[lane] = kScalesRows ? tw_snippet::tw_q_scale(state, b, h, h_kv, row + place.q_offset) : 1.0f;
  }
  for (int kv = 0; kv < count; ++kv) {
    const bool has_scale = kScalesColumns && !is_new_row(state, first + kv);
    const float of_column =
        has_scale ? tw_snippet::tw_k_scale(state, b, h, h_kv, place.first_kv_idx + kv) : 1.0f;
    for (int lane = 0; lane < kLanes; ++lane) s[kv * kLanes + lane] *= of_row[lane] * of_column;
  }
}

// p: [count][kLanes], weights that are summed already
TW_NOINLINE void scale_weights(const tw_snippet::tw_State& shared_state, const ChunkPlace& place,
                               int first, int count, float* p) {
  if (!kScalesWeights) return;
  const tw_snippet::tw_State state = shared_state;
  for (int kv = 0; kv < count; ++kv) {
    if (is_new_row(state, first + kv)) continue;
    const float scale =
        tw_snippet::tw_v_scale(state, place.b, place.h, place.h_kv, place.first_kv_idx + kv);
    for (int lane = 0; lane < kLanes; ++lane) p[kv * kLanes + lane] *= scale;
  }
}

// The end of a row of O. row: of the call or the sequence
TW_INLINE void finish_row(const tw_snippet::tw_State& state, const ChunkPlace& place, int row,
                          float divisor, RowSum& end) {
  if (kHasSink) {
    join_sink(tw_snippet::tw_sink(state, place.b, place.h, place.h_kv, row + place.q_offset), divisor,
              end);
  }
  if (kScalesValues && !kScalesWeights) {
    end.factor *= tw_snippet::tw_v_scale(state, place.b, place.h, place.h_kv, 0);
  }
  if (kScalesOut) end.factor /= tw_snippet::tw_out_scale(state, place.b, place.h, place.h_kv, 0);
}

}  // namespace tw_kernel
