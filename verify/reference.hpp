#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "../runtime/api/executor.hpp"
#include "attention_values.hpp"
#include "bound_sizes.hpp"
#include "dropout.hpp"

namespace tilewright::verify {

/// One row of scores through the snippets: `modified` and `keep` from `scores`, kv_len of each.
/// Called from many threads at once.
template <typename Score>
using RowSnippets = std::function<void(std::int64_t b, std::int64_t h, std::int64_t row,
                                       const Score* scores, Score* modified, unsigned char* keep)>;

/// What the rows of q, k or v were multiplied by.
struct RowScales {
  Values values = {};  ///< [batch, heads, rows, 1]; without elements: the spec has no such scale
  std::optional<double> odd = {};  ///< one that is NaN or infinite as a float32, if there is any

  double at(std::int64_t b, std::int64_t h, std::int64_t row) const {
    return values.data.empty() ? 1 : values.at(values.batch == 1 ? 0 : b, h, row, 0);
  }
};

/// What attention is computed from, as doubles. Elements are exact: every dtype fits.
struct DenseProblem {
  Values q;  ///< [batch, num_q_heads, q_len, head_dim]
  Values k;  ///< [batch or 1, num_kv_heads, kv_len, head_dim]
  Values v;  ///< [batch or 1, num_kv_heads, kv_len, v_head_dim]
  double scale = 1;
  /// [batch, num_q_heads, q_len, 1]: one more logit of each row, without a value; none where there
  /// is no sink.
  std::optional<Values> sink = {};
  /// [num_q_heads]: what out is divided by; empty: nothing.
  std::vector<double> out_scales = {};
  std::optional<DropoutDraws> dropout = {};  ///< none: every weight is kept
  bool wants_weights = false;                ///< results hold the softmax's weights too
  RowScales q_scales = {}, k_scales = {}, v_scales = {};
};

struct Reference {
  AttentionValues values;
  BoundSizes sizes = {};
};

/// Attention in double, by its definition and with none of the kernels' code:
///
///     s      = (q . k) * scale
///     s      = score_mod(s)
///     kept   = columns where mask_mod is true
///     p      = exp(s - max s) / sum                      over the kept columns only
///     out    = sum p v / out_scale,   lse = max s + log(sum),   max_scores = max s
///     weights = p, 0 of a column that is dropped or has the score -inf
///
/// With dropout, p of out and of weights is p times DropoutDraws::factor.
///
/// A column that is dropped takes no part: whatever its k and v hold, NaN too. A row with nothing
/// kept, or with only -inf kept, gives out 0 and lse -inf. A kept NaN or +inf makes its row NaN.
/// A sink joins the sum, and is no part of max_scores: a row with nothing else has out 0 and the
/// sink as its lse. A sink of NaN makes its row NaN, +inf gives out 0 and lse +inf, and -inf is
/// none.
Reference reference_attention(const DenseProblem& problem, const RowSnippets<double>& snippets,
                              Executor& threads);

}  // namespace tilewright::verify
