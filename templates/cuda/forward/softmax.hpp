// The online softmax of the rows of a thread. Sums are of the thread's own columns until the end.
//
// Needs: kRows, kColumns, kOutColumns, kExactDifferences, reduce_row_max, reduce_row_sum.

namespace tw_kernel {

struct Softmax {
  float max[kRows];  // greatest score so far of the whole row, in the scores' units
  float sum[kRows];  // of 2^((s - max) * to_log2), over this thread's columns
};

TW_INLINE Softmax start_softmax() {
  Softmax softmax;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    softmax.max[i] = -kInfinity;
    softmax.sum[i] = 0.0f;
  }
  return softmax;
}

TW_INLINE void multiply_scores(float factor, float (&s)[kRows][kColumns]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) s[i][j] *= factor;
  }
}

// A row's p are relative to a number that its greatest score may exceed by this many powers of 2
// until all that was summed is rescaled: after a row's first tiles it hardly ever is.
constexpr float kRescaleAbove = 8.0f;

// Makes `max` the rows' greatest scores, or leaves it where it is near enough.
TW_INLINE void raise_max(const float (&s)[kRows][kColumns], Softmax& softmax,
                         float (&out)[kRows][kOutColumns], float to_log2) {
  float greatest[kRows];
  bool rescale = false;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    greatest[i] = s[i][0];
#pragma unroll
    for (int j = 1; j < kColumns; ++j)
      greatest[i] = fmaxf(greatest[i], s[i][j]);  // passes over NaN
    greatest[i] = reduce_row_max(greatest[i]);
    rescale = rescale || (greatest[i] - softmax.max[i]) * to_log2 > kRescaleAbove;
  }
  if (!__any_sync(~0u, rescale)) return;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float max = fmaxf(softmax.max[i], greatest[i]);
    const float alpha = max == -kInfinity ? 1.0f : tw_math::exp2((softmax.max[i] - max) * to_log2);
    softmax.max[i] = max;
    softmax.sum[i] *= alpha;
#pragma unroll
    for (int j = 0; j < kOutColumns; ++j) out[i][j] *= alpha;
  }
}

// s: scores, replaced by p = 2^((s - max) * to_log2), to_log2 > 0. One multiply-add an element would
// round max * to_log2, which float32 shows at large scores: there the difference is taken first.
TW_INLINE void exponentiate(float (&s)[kRows][kColumns], Softmax& softmax, float to_log2) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    // A row without anything yet subtracts 0, as (-inf) - (-inf) would be NaN.
    const float max = softmax.max[i] == -kInfinity ? 0.0f : softmax.max[i];
    const float subtracted = max * to_log2;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      s[i][j] = kExactDifferences ? tw_math::exp2((s[i][j] - max) * to_log2)
                                  : tw_math::exp2(s[i][j] * to_log2 - subtracted);
      softmax.sum[i] += s[i][j];
    }
  }
}

}  // namespace tw_kernel
