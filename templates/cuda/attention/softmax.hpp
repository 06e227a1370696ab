#pragma once

#include "cuda/constants.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/special_functions.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"
#include "kernel/max_scores.hpp"

// The online softmax of the rows of a thread. Sums are of the thread's own columns until the end.
//
// Where kHasFixedMax, score_mod's results have bounds so near to kFixedMax that weights relative to it,
// 2^-100 to 2^60, are numbers of bf16 and of float32. It stands for the greatest score of every row,
// which no thread then computes (decision 35).

namespace tw_kernel {

struct Softmax {
  float max[kRows];   // greatest score so far of the whole row, in the scores' units, or kFixedMax
  float sum[kRows];   // of weights 2^((s - max) * to_log2 + kWeightExponent), over this thread's columns
  float lost[kRows];  // what rounding took from `sum`; 0 unless kExactSoftmax
  bool is_coarse;     // whether one of max is (see below); false where kExactSoftmax
};

TW_INLINE Softmax start_softmax() {
  Softmax softmax;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    softmax.max[i] = kHasFixedMax ? kFixedMax : -kInfinity;
    softmax.sum[i] = 0.0f;
    softmax.lost[i] = 0.0f;
  }
  softmax.is_coarse = false;
  return softmax;
}

// Of the whole row.
TW_INLINE float row_sum(const Softmax& softmax, int i) {
  return reduce_row_sum(kExactSoftmax ? softmax.sum[i] + softmax.lost[i] : softmax.sum[i]);
}

TW_INLINE void multiply_scores(float factor, float (&s)[kRows][kColumns]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) s[i][j] *= factor;
  }
}

// A row's p are relative to a number that its greatest score may exceed by this many powers of 2
// until all that was summed is rescaled: after a row's first tiles it hardly ever is. Weights of 8 bits end at
// 448: 2^8.75 is 431. By none where the greatest scores are stored.
constexpr float kRescaleAbove = has_max_scores() ? 0.0f : kWeightExponent == 0 ? 8.0f : 1.75f;

// Exponents beyond this are rounded by float32, by 2^-24 of their size, by more than an eighth of what
// rounding a weight of 1 takes at most. A row with one key has the weight 1, whatever its score.
constexpr float kCoarse = 0x1p21f / (1 << kWeightDigits);

// Whether a score is coarse in units of the exponent. A multiply-add s * to_log2 - score * to_log2 is off by
// its rounding, from 2^28 on it overflows f16, and from 2^128 / to_log2 on the product is infinite.
TW_INLINE bool is_coarse(float score, float to_log2) { return fabsf(score * to_log2) > kCoarse; }

// Whether a tile's greatest scores exceed those so far by too much, or those so far are coarse, which
// needs subtract_coarse for each tile; the same for all lanes of a warp.
// shift: what each of s is too small by, 0 unless kHasSlope. greatest: of the thread's own columns.
TW_INLINE bool exceeds_max(const float (&s)[kRows][kColumns], float shift, const Softmax& softmax,
                           float to_log2, float (&greatest)[kRows]) {
  if (kHasFixedMax) return false;
  bool exceeds = softmax.is_coarse;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    // Two chains where there are columns for them: each comparison waits for the one before.
    constexpr int kChains = kColumns > 1 ? 2 : 1;
    float chain[2] = {s[i][0], s[i][kChains - 1]};
#pragma unroll
    for (int j = kChains; j < kColumns; ++j) {
      chain[j % kChains] = fmaxf(chain[j % kChains], s[i][j]);  // passes over NaN
    }
    greatest[i] = fmaxf(chain[0], chain[1]);
    if (kHasSlope) greatest[i] += shift;
    exceeds = exceeds || (greatest[i] - softmax.max[i]) * to_log2 > kRescaleAbove;
  }
  return __any_sync(~0u, exceeds);
}

// Makes `max` the rows' greatest scores. alpha: what the output so far is to be multiplied by.
TW_INLINE void raise_max(const float (&greatest)[kRows], Softmax& softmax, float to_log2,
                         float (&alpha)[kRows]) {
  softmax.is_coarse = false;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float max = fmaxf(softmax.max[i], reduce_row_max(greatest[i]));
    alpha[i] = max == -kInfinity ? 1.0f : tw_math::exp2((softmax.max[i] - max) * to_log2);
    softmax.max[i] = max;
    softmax.is_coarse |= !kExactSoftmax && is_coarse(max, to_log2) && fabsf(max) < kInfinity;
    softmax.sum[i] *= alpha[i];
    if (kExactSoftmax) softmax.lost[i] *= alpha[i];
  }
}

TW_INLINE void rescale(const float (&alpha)[kRows], float (&out)[kRows][kOutColumns]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kOutColumns; ++j) out[i][j] *= alpha[i];
  }
}

// A tile's sum joins the row's without a rounding error (Knuth's TwoSum). The listed tiles of a
// mask need not come in the order of kv, and small weights after large ones would each be rounded
// at the size of the large ones.
TW_INLINE void add_exactly(float tile_sum, float& sum, float& lost) {
  const float before = sum;
  sum += tile_sum;
  const float added = sum - before;
  lost += (before - (sum - added)) + (tile_sum - added);
}

// What exponentiate takes from each score. A row without anything yet takes infinity, so that its
// weights are 0 whatever the shift is: (-inf) - (-inf) would be NaN.
TW_INLINE void find_references(const Softmax& softmax, float shift, float (&reference)[kRows]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    reference[i] = softmax.max[i] == -kInfinity ? kInfinity : softmax.max[i] - shift;
  }
}

// Takes coarse references from the scores right away, where the difference is exact. Infinite ones are among
// them, with the same weights: 0, and NaN for a score of infinity.
TW_INLINE void subtract_coarse(float to_log2, float (&reference)[kRows],
                               float (&s)[kRows][kColumns]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const bool coarse = !kExactSoftmax && is_coarse(reference[i], to_log2);
    const float now = coarse ? reference[i] : 0.0f;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) s[i][j] -= now;
    reference[i] = coarse ? 0.0f : reference[i];
  }
}

// Adds a tile's weights to the sums of the tiles before it.
TW_INLINE void sum_weights(const float (&p)[kRows][kColumns], const float (&before)[kRows],
                           Softmax& softmax) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    softmax.sum[i] = before[i];
#pragma unroll
    for (int j = 0; j < kColumns; ++j) softmax.sum[i] += p[i][j];
  }
}

// s: scores, replaced by p = 2^((s - reference) * to_log2 + kWeightExponent), to_log2 > 0. One multiply-add an element
// (the compiler makes one of the product and the difference) rounds reference * to_log2, which float32
// shows: there the difference is taken first. Coarse references were taken from s before.
TW_INLINE void exponentiate(float (&s)[kRows][kColumns], const float (&reference)[kRows],
                            Softmax& softmax, float to_log2) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float scaled = reference[i] * to_log2;
    const float subtracted = kWeightExponent == 0 ? scaled : scaled - static_cast<float>(kWeightExponent);
    float sum = kExactSoftmax ? 0.0f : softmax.sum[i];
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      static_assert(!kExactSoftmax || kWeightExponent == 0, "the exponent is not added there");
      s[i][j] = kExactSoftmax ? tw_math::exp2((s[i][j] - reference[i]) * to_log2)
                              : tw_math::exp2(s[i][j] * to_log2 - subtracted);
      sum += s[i][j];
    }
    if (kExactSoftmax) {
      add_exactly(sum, softmax.sum[i], softmax.lost[i]);
    } else {
      softmax.sum[i] = sum;
    }
  }
}

}  // namespace tw_kernel
