#pragma once

#include "abi/cuda_forward.hpp"
#include "attention/row_sum.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/attention/softmax.hpp"
#include "cuda/constants.hpp"
#include "cuda/element.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/convert.hpp"
#include "cuda/ptx/special_functions.hpp"
#include "kernel/configuration.hpp"
#include "kernel/dropout.hpp"
#include "kernel/engine.hpp"
#include "kernel/max_scores.hpp"
#include "kernel/scales.hpp"

// The end of a q tile: out = O / sum, lse = max + ln(sum).

namespace tw_kernel {

// The rows' greatest scores as lse counts them. The factors' product comes first: that of a score near
// float32's limits with log2(e) is infinite.
struct GreatestScores {
  float value[kRows];
};

TW_INLINE GreatestScores greatest_scores(const Softmax& softmax, float to_log2) {
  GreatestScores greatest;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    greatest.value[i] = kHasScoreMod ? softmax.max[i] * (to_log2 * kLn2)
                                     : softmax.max[i] * to_log2 * kLn2;
  }
  return greatest;
}

// Whether this thread stores what belongs to row i as a whole.
TW_INLINE bool stores_row(const SnippetArguments& call, const QTile& q_tile, int i) {
  return out_column_of(0) == 0 && q_tile.first_row + row_of(i) < q_tile.q_len(call);
}

// Of whole rows: the sums, and the greatest scores.
struct LseParts {
  float sum[kRows];
  float greatest[kRows];
};

// x: the sum of a row's weights. Where the kernel rounds these to multiply them, to TF32 at the finest, the special
// function unit's error of 2^-22 is negligible; logf has 30 instructions, each of which waits for the one before.
TW_INLINE float natural_logarithm(float x) { return kExactSoftmax ? ::logf(x) : kLn2 * tw_math::log2(x); }

// Each row's by one of the lanes that share it.
TW_INLINE void store_lse(const ForwardArguments& arguments, const SnippetArguments& call,
                         const QTile& q_tile, const LseParts& parts) {
  if (!kHasLse) return;
#pragma unroll
  for (int first = 0; first < kRows; first += kLanesSharingRow) {
    const int own = first + lane_of_row();
    const int row = q_tile.first_row + row_of(own);
    if (own >= kRows || row >= q_tile.q_len(call)) continue;
    float sum = parts.sum[first], greatest = parts.greatest[first];
#pragma unroll
    for (int i = first + 1; i < min(first + kLanesSharingRow, kRows); ++i) {
      sum = i == own ? parts.sum[i] : sum;
      greatest = i == own ? parts.greatest[i] : greatest;
    }
    arguments.lse[q_tile.lse_begin(call, q_tile.b, q_tile.h) + row] =
        sum == 0.0f ? -kInfinity : greatest + natural_logarithm(sum);
  }
}

// What becomes of a thread's rows of O.
struct RowEnds {
  float factor[kRows];  // 1 / sum; anything where empty
  bool empty[kRows];    // nothing was kept
};

// What a row of O is divided by. With a fixed maximum the weight of a sequence's only key is not 1: the
// row is that key's value only if its sum is rounded as the weight in O is.
TW_INLINE float divisor_of(const SnippetArguments& call, const QTile& q_tile, float sum) {
  if (!kHasFixedMax || !kMayHaveOneKey || q_tile.kv_len(call) != 1) return sum;
  QElement rounded;
  from_float(sum, &rounded);
  return to_float(rounded);
}

// Stores lse. It needs no O, so that its last product may still be under way.
TW_INLINE RowEnds end_rows(const ForwardArguments& arguments, const SnippetArguments& call,
                           const QTile& q_tile, const Softmax& softmax,
                           const GreatestScores& greatest) {
  RowEnds ends;
  LseParts lse;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    constexpr float kUnit = 1.0f / (1 << kWeightExponent);  // of weights
    const float of_weights = row_sum(softmax, i);
    const float sum = kWeightExponent == 0 ? of_weights : of_weights * kUnit;
    // Rounding to nearest takes NVRTC 20 ms; an ulp of float32 is negligible with 16-bit weights.
    const float divisor = divisor_of(call, q_tile, sum);
    ends.factor[i] = kExactSoftmax ? __frcp_rn(divisor) : tw_math::reciprocal(divisor);
    ends.empty[i] = sum == 0.0f;
    if (has_max_scores() && stores_row(call, q_tile, i)) {
      const long long head = q_tile.lse_begin(call, q_tile.b, q_tile.h);
      store_max_score(arguments, head + q_tile.first_row + row_of(i), sum, greatest.value[i]);
    }
    if constexpr (changes_row_ends()) {
      RowSum row = {greatest.value[i], sum, ends.factor[i], ends.empty[i]};
      finish_row(call, q_tile, q_tile.first_row + row_of(i), q_tile.h, divisor, row);
      ends.factor[i] = row.factor;
      ends.empty[i] = row.empty;
      lse.sum[i] = row.sum;
      lse.greatest[i] = row.greatest;
    } else {
      lse.sum[i] = sum;
      lse.greatest[i] = greatest.value[i];
    }
    ends.factor[i] = finish_dropout(call, q_tile, ends.factor[i]);
    if (kWeightExponent != 0) ends.factor[i] *= kUnit;
  }
  store_lse(arguments, call, q_tile, lse);
  return ends;
}

}  // namespace tw_kernel
