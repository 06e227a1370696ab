#pragma once

#include <cstdint>

#include "verify/reference.hpp"

namespace tilewright::tests {

/// A mistake that attention kernels are known for.
enum class Fault {
  none,
  kv_off_by_one,        ///< row r reads column c + 1 of v where it should read c
  last_column_lost,     ///< the last column of every row is left out
  missing_rescale,      ///< the accumulator is not rescaled when the running maximum grows
  wrong_kv_head,        ///< query head h reads kv head h % num_kv_heads
  swapped_heads,        ///< the results of the first two query heads change places
  bf16_accumulator,     ///< sums of P V are kept in bf16
  scale_twice,          ///< scores are scaled twice
  natural_lse_in_log2,  ///< lse is in units of log 2
};

/// Causal attention, the last row seeing every column, as a kernel computes it: tiles of 32
/// columns, online softmax, float32 sums, out rounded to `out_dtype`. With Fault::none it is
/// honest.
verify::AttentionValues tiled_attention(const verify::DenseProblem& problem, DType out_dtype,
                                        Fault fault);

/// The snippets of the same: no score_mod, causal mask.
template <typename Score>
verify::RowSnippets<Score> causal(const verify::DenseProblem& problem) {
  return [kv_len = problem.k.rows, q_len = problem.q.rows](std::int64_t, std::int64_t,
                                                           std::int64_t row, const Score* scores,
                                                           Score* modified, unsigned char* keep) {
    for (std::int64_t column = 0; column < kv_len; ++column) {
      modified[column] = scores[column];
      keep[column] = column <= row + kv_len - q_len;
    }
  };
}

}  // namespace tilewright::tests
