#include "verify/value_spread.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

#include "verify/kept_cells.hpp"

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
      : problem_(problem), b_(b), h_(h), cells_(problem.q.rows, problem.k.rows, block) {
    const auto columns = static_cast<std::size_t>(problem.k.rows);
    std::vector<float> scores(columns), modified(columns);
    std::vector<unsigned char> keep(columns);
    for (std::int64_t row = 0; row < problem.q.rows; ++row) {
      snippets(b, h, row, scores.data(), modified.data(), keep.data());
      if (cells_.keep_row(row, keep)) rows_.push_back(row);
    }
  }

  void mark(std::int64_t v_b, std::int64_t h_kv, const std::vector<std::int64_t>& odd,
            Values& spread) const {
    for (const std::int64_t row : rows_) {
      for (const std::int64_t column : odd) {
        if (!cells_.may_share_a_tile(row, column)) continue;
        const double* const value = problem_.v.row(v_b, h_kv, column);
        for (std::int64_t i = 0; i < spread.width; ++i) {
          if (!std::isfinite(value[i])) spread.at(b_, h_, row, i) = 1;
        }
      }
    }
  }

 private:
  const DenseProblem& problem_;
  std::int64_t b_, h_;
  KeptCells cells_;
  std::vector<std::int64_t> rows_;  // that keep something
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
