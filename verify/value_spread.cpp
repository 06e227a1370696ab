#include "verify/value_spread.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "verify/kept_rows.hpp"

namespace tilewright::verify {
namespace {

// Rows of one head of v.
std::vector<std::int64_t> odd_rows(const Values& v, std::int64_t b, std::int64_t h) {
  std::vector<std::int64_t> odd;
  for (std::int64_t row = 0; row < v.rows; ++row) {
    if (!v.is_finite_row(b, h, row)) odd.push_back(row);
  }
  return odd;
}

// One query head of one batch.
class HeadValueSpread {
 public:
  HeadValueSpread(const DenseProblem& problem, const RowSnippets<float>& snippets,
                  const std::array<std::int64_t, 2>& block, std::int64_t b, std::int64_t h)
      : problem_(problem), b_(b), h_(h), rows_(problem, snippets, block, b, h) {}

  void mark(std::int64_t v_b, std::int64_t h_kv, const std::vector<std::int64_t>& odd,
            Values& spread) {
    for (std::int64_t row = 0; row < problem_.q.rows; ++row) {
      if (!rows_.keeps_some(row)) continue;
      const std::vector<unsigned char>& keep = rows_.columns_of(row);
      for (const std::int64_t column : odd) {
        if (!rows_.may_share_a_tile(row, column)) continue;
        const bool keeps = keep[static_cast<std::size_t>(column)] != 0 &&
                           (!problem_.dropout || problem_.dropout->keeps(b_, h_, row, column));
        const double reach = keeps ? kThroughKept : kThroughDropped;
        const double* const value = problem_.v.row(v_b, h_kv, column);
        for (std::int64_t i = 0; i < spread.width; ++i) {
          double& element = spread.at(b_, h_, row, i);
          if (!std::isfinite(value[i])) element = std::max(element, reach);
        }
      }
    }
  }

 private:
  const DenseProblem& problem_;
  std::int64_t b_, h_;
  KeptRows<float> rows_;
};

}  // namespace

std::optional<Values> value_spread(const DenseProblem& problem, const RowSnippets<float>& snippets,
                                   const std::array<std::int64_t, 2>& block) {
  const Values& q = problem.q;
  std::optional<Values> spread;
  for (std::int64_t b = 0; b < q.batch; ++b) {
    for (std::int64_t h = 0; h < q.heads; ++h) {
      const std::int64_t v_b = problem.v.batch == 1 ? 0 : b;
      const std::int64_t h_kv = h / (q.heads / problem.k.heads);
      const std::vector<std::int64_t> odd = odd_rows(problem.v, v_b, h_kv);
      if (odd.empty()) continue;
      if (!spread) spread = Values::zeros(q.batch, q.heads, q.rows, problem.v.width);
      HeadValueSpread(problem, snippets, block, b, h).mark(v_b, h_kv, odd, *spread);
    }
  }
  return spread;
}

}  // namespace tilewright::verify
