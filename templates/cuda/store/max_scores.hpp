#pragma once

#include "cuda/constants.hpp"
#include "cuda/language.hpp"
#include "kernel/sequence.hpp"

// The rows' greatest scores as an output of the spec.

namespace tw_kernel {

TW_INLINE constexpr bool has_max_scores() { return true; }

// index: of the row in [batch, num_q_heads, q_len], or [num_q_heads, total_q]. sum: of the row's weights
// without the sink; 0 where nothing is kept, NaN where a kept score is NaN or infinity. greatest: its
// greatest score, in units of score_mod's results.
TW_INLINE void store_max_score(const ForwardArguments& arguments, long long index, float sum,
                               float greatest) {
  arguments.max_scores[index] = sum == 0.0f ? -kInfinity : sum == sum ? greatest : sum;
}

}  // namespace tw_kernel
