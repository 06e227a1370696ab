#pragma once

#include <cstdint>
#include <vector>

#include "attention_values.hpp"

namespace tilewright::verify {

/// Rows of (q . k) * scale in double, for the reference and the checked interpretation.
class Scores {
 public:
  /// @param q [batch, num_q_heads, q_len, head_dim]; must outlive this
  /// @param k [batch or 1, num_kv_heads, kv_len, head_dim]
  Scores(const Values& q, const Values& k, double scale);

  /// Fills `scores` (kv_len) with one row.
  void row(std::int64_t b, std::int64_t h, std::int64_t row, std::vector<double>& scores) const;

 private:
  const Values& q_;
  Values k_transposed_;  // [batch or 1, num_kv_heads, head_dim, kv_len]
  double scale_;
};

/// Makes modified scores infinite that are beyond float32's range, rounding included: they are in
/// every kernel.
void bound_scores(std::vector<double>& modified);

}  // namespace tilewright::verify
