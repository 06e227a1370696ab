// The online softmax of one chunk of rows. Scores are in units of log2: p = 2^(s - max).

namespace tw_kernel {

// s: [count], replaced by p. On return row_max and row_sum hold this tile too, and alpha is what
// earlier sums are to be multiplied by.
TW_INLINE void update_softmax(Vector* __restrict s, int count, Vector& row_max, Vector& row_sum,
                              Vector& alpha) {
  Vector greatest[4] = {row_max, row_max, row_max, row_max};
  int kv = 0;
  for (; kv + 4 <= count; kv += 4) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) greatest[i] = max_ignoring_nan(greatest[i], s[kv + i]);
  }
  for (; kv < count; ++kv) greatest[0] = max_ignoring_nan(greatest[0], s[kv]);
  greatest[0] = max_ignoring_nan(greatest[0], greatest[1]);
  greatest[2] = max_ignoring_nan(greatest[2], greatest[3]);
  const Vector new_max = max_ignoring_nan(greatest[0], greatest[2]);

  // A row without anything yet subtracts 0, as (-inf) - (-inf) would be NaN.
  const Vector subtracted = new_max == -kInfinity ? Vector{} : new_max;
  alpha = exp2_not_positive(row_max - subtracted);
  Vector sum[2] = {};
  for (kv = 0; kv + 2 <= count; kv += 2) {
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      s[kv + i] = exp2_not_positive(s[kv + i] - subtracted);
      sum[i] += s[kv + i];
    }
  }
  for (; kv < count; ++kv) sum[0] += s[kv] = exp2_not_positive(s[kv] - subtracted);
  row_sum = row_sum * alpha + (sum[0] + sum[1]);
  row_max = new_max;
}

}  // namespace tw_kernel
