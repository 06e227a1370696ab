#pragma once

#include "cuda/attention/modify.hpp"
#include "cuda/attention/softmax.hpp"
#include "cuda/constants.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/store/row_ends.hpp"
#include "cuda/tile/fragment.hpp"
#include "kernel/configuration.hpp"
#include "snippet/snippets.hpp"

// A score_mod of the form `score + slope * (kv_idx - q_idx)` whose slope names neither index, ALiBi.
// An element's term is then the slope times a constant, and the slope times the distance of the
// thread's first column from its first row, which is alike for all of its elements of a tile. The
// first part is where the product of Q and K starts from, in units of q.k, so that it is computed
// before the product and not between it and the softmax; the other part is left to the softmax.

namespace tw_kernel {

// A mask that is asked about every element leaves no registers for what a thread could keep of it.
constexpr bool kKeepsSlope = kMasked || !kHasMaskMod;

struct Slope {
  float per_column = 0.0f;  // in units of q.k
  int distance = 0;         // see find_distance; not set unless kKeepsSlope
};

// Of the thread's column 0 from its row 0, in the tile that begins with column 0.
TW_INLINE int find_distance(const SnippetInputs& inputs) {
  const int q_idx = inputs.q_tile->first_row + row_of(0) + inputs.q_offset;
  return column_of(0) + inputs.kv_offset - q_idx;
}

// In units of scores. score_mod's text is the slope alone.
TW_INLINE float load_slope(const SnippetInputs& inputs) {
  return kSlopeSign *
         tw_snippet::tw_score_mod(inputs.state, *inputs.head_loads, 0.0f, inputs.b, inputs.h, inputs.h_kv,
                                  tw_snippet::tw_RowIndex{}, tw_snippet::tw_ColumnIndex{});
}

// No two indices of the call's tiles are further apart.
TW_INLINE float greatest_distance(const SnippetInputs& inputs) {
  const float q_end = static_cast<float>(inputs.q_offset) + static_cast<float>(inputs.last_row);
  const float kv_end = static_cast<float>(inputs.kv_offset) + static_cast<float>(inputs.kv_len);
  return 1024.0f + fmaxf(fabsf(kv_end - static_cast<float>(inputs.q_offset)),
                         fabsf(q_end - static_cast<float>(inputs.kv_offset)));
}

// Exponents of 2 that a slope may add up to from one end of the call to the other: float32 rounds such
// a sum by 4 at most, which a row's weights have in common.
constexpr float kGreatestExponent = 134217728.0f;

// scale: of scores, > 0. to_log2: the exponent of 2 that a unit of q.k stands for. A slope so steep that
// its terms exceed kGreatestExponent is clamped. Up to 2^17 tokens a key's weight then still is 2^1024 times its
// neighbour's, so a row has one weight, whatever the slope; unclamp_slope corrects its score.
TW_INLINE Slope find_slope(const SnippetInputs& inputs, float scale, float to_log2) {
  const float slope = load_slope(inputs);
  const float steepest = kGreatestExponent / (greatest_distance(inputs) * to_log2);
  const bool clamps = fabsf(slope) > steepest * scale && fabsf(slope) < kInfinity;
  const float per_column = clamps ? copysignf(steepest, slope) : slope / scale;
  if (!kKeepsSlope) return {per_column, 0};
  // As if it differed between lanes: ptxas moves a number that a warp has in common before every product
  // with it, 20 instructions a tile.
  return {fmaf(static_cast<float>(lane()), 0.0f, per_column), find_distance(inputs)};
}

// What issue_scores adds q.k to.
TW_INLINE void start_scores(const Slope& slope, float (&s)[kRows][kColumns]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      s[i][j] = slope.per_column * static_cast<float>(column_offset(j) - row_offset(i));
    }
  }
}

// What each score of the tile that begins with column `first` is too small by.
TW_INLINE float slope_shift(const SnippetInputs& inputs, const Slope& slope, int first) {
  const int distance = kKeepsSlope ? slope.distance : find_distance(inputs);
  return slope.per_column * static_cast<float>(distance + first);
}

// The rows' greatest scores under the slope that score_mod gives, where find_slope clamped it. The distance
// of the greatest score's indices is what its term is of the slope.
TW_INLINE GreatestScores unclamp_slope(const SnippetInputs& inputs, const Slope& slope, float scale,
                                       const Softmax& softmax, GreatestScores greatest) {
  const float wanted = load_slope(inputs);
  const float clamped = slope.per_column * scale;
  if (!(fabsf(wanted) > 1.000001f * fabsf(clamped)) || fabsf(wanted) == kInfinity) return greatest;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float distance = rintf(softmax.max[i] / slope.per_column);
    if (!(fabsf(distance) < kInfinity)) continue;
    greatest.value[i] += distance * wanted - distance * clamped;
  }
  return greatest;
}

}  // namespace tw_kernel
