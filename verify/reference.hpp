#pragma once

#include <cstdint>
#include <functional>

#include "../runtime/api/executor.hpp"
#include "attention_values.hpp"

namespace tilewright::verify {

/// One row of scores through the snippets: `modified` and `keep` from `scores`, kv_len of each.
/// Called from many threads at once.
template <typename Score>
using RowSnippets = std::function<void(std::int64_t b, std::int64_t h, std::int64_t row,
                                       const Score* scores, Score* modified, unsigned char* keep)>;

/// What attention is computed from, as doubles. Elements are exact: every dtype fits.
struct DenseProblem {
  Values q;  ///< [batch, num_q_heads, q_len, head_dim]
  Values k;  ///< [batch or 1, num_kv_heads, kv_len, head_dim]
  Values v;  ///< [batch or 1, num_kv_heads, kv_len, v_head_dim]
  double scale = 1;
};

struct Reference {
  AttentionValues values;
  double max_abs_score = 0;  ///< of the finite modified scores that were kept
};

/// Attention in double, by its definition and with none of the kernels' code:
///
///     s      = (q . k) * scale
///     s      = score_mod(s)
///     kept   = columns where mask_mod is true
///     p      = exp(s - max s) / sum                      over the kept columns only
///     out    = sum p v,   lse = max s + log(sum)
///
/// A column that is dropped takes no part: whatever its k and v hold, NaN too. A row with nothing
/// kept, or with only -inf kept, gives out 0 and lse -inf. A kept NaN or +inf makes its row NaN.
Reference reference_attention(const DenseProblem& problem, const RowSnippets<double>& snippets,
                              Executor& threads);

}  // namespace tilewright::verify
