// The online softmax of the rows of a thread. Sums are of the thread's own columns until the end.
//
// Needs: kRows, kColumns, kOutColumns, reduce_row_max, reduce_row_sum.

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

// s: scores, replaced by p = 2^((s - max) * to_log2), to_log2 > 0. out: rescaled to the new max.
TW_INLINE void update_softmax(float (&s)[kRows][kColumns], Softmax& softmax,
                              float (&out)[kRows][kOutColumns], float to_log2) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    float greatest = softmax.max[i];  // fmaxf passes over NaN
#pragma unroll
    for (int j = 0; j < kColumns; ++j) greatest = fmaxf(greatest, s[i][j]);
    greatest = reduce_row_max(greatest);
    // A row without anything yet subtracts 0, as (-inf) - (-inf) would be NaN.
    const float subtracted = greatest == -kInfinity ? 0.0f : greatest * to_log2;
    const float alpha = tw_math::exp2(softmax.max[i] * to_log2 - subtracted);
    softmax.max[i] = greatest;
    float sum = softmax.sum[i] * alpha;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      s[i][j] = tw_math::exp2(s[i][j] * to_log2 - subtracted);
      sum += s[i][j];
    }
    softmax.sum[i] = sum;
#pragma unroll
    for (int j = 0; j < kOutColumns; ++j) out[i][j] *= alpha;
  }
}

}  // namespace tw_kernel
