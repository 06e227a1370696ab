#pragma once

#include <optional>

#include "attention_values.hpp"
#include "reference.hpp"

namespace tilewright::verify {

/// Where float32 overflows in a kernel on the way to what double precision finds finite.
struct FloatOverflow {
  /// [batch, num_q_heads, q_len, 1]: 1 where a kept score of the row may overflow: its products of
  /// q and k, or what score_mod makes of them. Nothing of the row is known then.
  Values rows;
  /// Of out: 1 where the sum of weights and v may. A kernel's weights are at most 2^8, relative to
  /// the greatest score so far, and its sum is divided at the end. NaN and infinity are right there
  /// too.
  Values out;
};

/// Nothing where no row and no element may overflow.
/// @param naive a row that is finite here has no such score_mod
std::optional<FloatOverflow> float_overflow(const DenseProblem& problem,
                                            const RowSnippets<float>& in_float,
                                            const RowSnippets<double>& in_double,
                                            const AttentionValues& reference,
                                            const AttentionValues& naive);

}  // namespace tilewright::verify
