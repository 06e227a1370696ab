#pragma once

#include "attention/row_sum.hpp"
#include "kernel/elementary.hpp"
#include "kernel/language.hpp"

// A sink is one more logit of a row, without a value: it joins the sum that out is divided by.

namespace tw_kernel {

// Equal infinities differ by 0.
TW_INLINE float sink_weight(float score, float greatest) {
  return score == greatest ? 1.0f : tw_math::exp(score - greatest);
}

// divisor: what O was to be divided by. A sink of -infinity is none, one of +infinity leaves nothing to the
// values, and one of NaN makes the row NaN.
TW_INLINE void join_sink(float sink, float divisor, RowSum& row) {
  constexpr float kInfinite = __builtin_inff();
  if (sink == -kInfinite) return;
  const float greatest = sink > row.greatest ? sink : row.greatest;
  const float of_scores = sink_weight(row.greatest, greatest);
  const float of_sink = sink_weight(sink, greatest);
  row.greatest = greatest;
  row.empty = row.sum == 0.0f ? sink == sink : row.sum == row.sum && sink == kInfinite;
  row.factor = of_scores / (divisor * of_scores + of_sink);
  row.sum = row.sum * of_scores + of_sink;
}

}  // namespace tw_kernel
