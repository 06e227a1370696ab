#include "verify/gradient_spread.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "verify/kept_rows.hpp"

namespace tilewright::verify {
namespace {

bool is_finite(const Values& values) {
  return std::all_of(values.data.begin(), values.data.end(),
                     [](double x) { return std::isfinite(x); });
}

// One query head of one batch.
class HeadSpread {
 public:
  HeadSpread(const DenseProblem& problem, const GradientInputs& inputs,
             const RowSnippets<double>& snippets, const std::array<std::int64_t, 2>& block,
             std::int64_t b, std::int64_t h)
      : problem_(problem),
        b_(b),
        h_(h),
        k_b_(problem.k.batch == 1 ? 0 : b),
        v_b_(problem.v.batch == 1 ? 0 : b),
        h_kv_(h / (problem.q.heads / problem.k.heads)),
        rows_(problem, snippets, block, b, h) {
    find_odd_rows(inputs);
    std::vector<std::int64_t> odd_values;
    for (std::int64_t column = 0; column < problem.k.rows; ++column) {
      const bool is_odd_value = !problem.v.is_finite_row(v_b_, h_kv_, column);
      if (is_odd_value) odd_values.push_back(column);
      if (is_odd_value || !problem.k.is_finite_row(k_b_, h_kv_, column)) {
        odd_columns_.push_back(column);
      }
    }
    find_odd_deltas(inputs, odd_values);
  }

  void mark(GradientValues& spread) const {
    for (const std::int64_t row : odd_rows_) {
      mark_row(spread.dq, b_, h_, row);
      for (std::int64_t column = 0; column < problem_.k.rows; ++column) {
        if (rows_.may_share_a_tile(row, column)) mark_column(spread, column);
      }
    }
    for (const std::int64_t row : odd_deltas_) {
      for (std::int64_t column = 0; column < problem_.k.rows; ++column) {
        if (rows_.may_share_a_tile(row, column)) mark_row(spread.dk, k_b_, h_kv_, column);
      }
    }
    for (const std::int64_t column : odd_columns_) {
      for (std::int64_t row = 0; row < problem_.q.rows; ++row) {
        if (!rows_.may_share_a_tile(row, column)) continue;
        mark_row(spread.dq, b_, h_, row);
        mark_column(spread, column);
      }
    }
    if (!odd_rows_.empty() || !odd_columns_.empty()) {
      std::fill(spread.named.begin(), spread.named.end(), 1.0);
    }
  }

 private:
  void find_odd_rows(const GradientInputs& inputs) {
    for (std::int64_t row = 0; row < problem_.q.rows; ++row) {
      // dout and dlse of a row that keeps nothing count as 0.
      const bool is_odd =
          !problem_.q.is_finite_row(b_, h_, row) ||
          (rows_.keeps_some(row) && (!inputs.dout.is_finite_row(b_, h_, row) ||
                                     (inputs.dlse && !inputs.dlse->is_finite_row(b_, h_, row))));
      if (is_odd) odd_rows_.push_back(row);
    }
  }

  // Rows whose delta, dout . out, may hold what v does: dX of all of their elements does then.
  void find_odd_deltas(const GradientInputs& inputs, const std::vector<std::int64_t>& odd_values) {
    for (std::int64_t row = 0; row < problem_.q.rows; ++row) {
      const bool meets_one =
          std::any_of(odd_values.begin(), odd_values.end(),
                      [&](std::int64_t column) { return rows_.may_share_a_tile(row, column); });
      if (meets_one && (!inputs.out || !inputs.out->is_finite_row(b_, h_, row))) {
        odd_deltas_.push_back(row);
      }
    }
  }

  static void mark_row(Values& values, std::int64_t b, std::int64_t h, std::int64_t row) {
    std::fill_n(values.row(b, h, row), values.width, 1.0);
  }

  void mark_column(GradientValues& spread, std::int64_t column) const {
    mark_row(spread.dk, k_b_, h_kv_, column);
    mark_row(spread.dv, v_b_, h_kv_, column);
  }

  const DenseProblem& problem_;
  std::int64_t b_, h_, k_b_, v_b_, h_kv_;
  KeptRows<double> rows_;
  std::vector<std::int64_t> odd_rows_, odd_columns_;  // that hold NaN or infinity
  std::vector<std::int64_t> odd_deltas_;              // rows
};

}  // namespace

std::optional<GradientValues> gradient_spread(const DenseProblem& problem,
                                              const GradientInputs& inputs,
                                              const RowSnippets<double>& snippets,
                                              const std::array<std::int64_t, 2>& block) {
  const bool are_finite = is_finite(problem.q) && is_finite(problem.k) && is_finite(problem.v) &&
                          is_finite(inputs.dout) && (!inputs.dlse || is_finite(*inputs.dlse));
  if (are_finite) return std::nullopt;
  GradientValues spread = zeros_for(problem, inputs);
  for (std::int64_t b = 0; b < problem.q.batch; ++b) {
    for (std::int64_t h = 0; h < problem.q.heads; ++h) {
      HeadSpread(problem, inputs, snippets, block, b, h).mark(spread);
    }
  }
  return spread;
}

}  // namespace tilewright::verify
