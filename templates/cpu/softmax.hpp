#pragma once

#include "cpu/inline.hpp"
#include "cpu/vector.hpp"

// The online softmax of one chunk of rows: p = e^(s - max), max being the greatest score so far.

namespace tw_kernel {

struct RowState {
  Vector max;  // greatest score so far, -inf before the first
  Vector sum;  // of p
};

// s: [count], replaced by p. Returns what earlier sums of these rows are to be multiplied by.
TW_INLINE Vector update_softmax(Vector* __restrict s, int count, RowState& rows) {
  Vector greatest[4] = {rows.max, rows.max, rows.max, rows.max};
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
  const Vector alpha = exp_not_positive(rows.max - subtracted);
  Vector sum[2] = {};
  for (kv = 0; kv + 2 <= count; kv += 2) {
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      s[kv + i] = exp_not_positive(s[kv + i] - subtracted);
      sum[i] += s[kv + i];
    }
  }
  for (; kv < count; ++kv) {
    s[kv] = exp_not_positive(s[kv] - subtracted);
    sum[0] += s[kv];
  }
  rows = {new_max, rows.sum * alpha + (sum[0] + sum[1])};
  return alpha;
}

}  // namespace tw_kernel
