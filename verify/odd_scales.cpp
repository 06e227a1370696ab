#include "verify/odd_scales.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "runtime/io/float16.hpp"
#include "verify/kept_rows.hpp"

namespace tilewright::verify {
namespace {

// Of one head: the rows whose scale is odd.
std::vector<bool> odd_rows(const RowScales& scales, std::int64_t b, std::int64_t h,
                           std::int64_t rows) {
  std::vector<bool> is_odd(static_cast<std::size_t>(rows));
  if (!scales.odd) return is_odd;
  for (std::int64_t row = 0; row < rows; ++row) {
    is_odd[static_cast<std::size_t>(row)] = is_odd_scale(scales.at(b, h, row));
  }
  return is_odd;
}

// One query head of one batch.
class HeadReach {
 public:
  HeadReach(const DenseProblem& problem, const RowSnippets<float>& snippets,
            const std::array<std::int64_t, 2>& block, std::int64_t b, std::int64_t h)
      : problem_(problem), b_(b), h_(h), rows_(problem, snippets, block, b, h) {}

  void mark(ReachOfScales& reach) {
    const std::int64_t h_kv = h_ / (problem_.q.heads / problem_.k.heads);
    const std::int64_t columns = problem_.k.rows;
    const std::vector<bool> q = odd_rows(problem_.q_scales, b_, h_, problem_.q.rows);
    const std::vector<bool> k = odd_rows(problem_.k_scales, b_, h_kv, columns);
    const std::vector<bool> v = odd_rows(problem_.v_scales, b_, h_kv, columns);
    for (std::int64_t row = 0; row < problem_.q.rows; ++row) {
      const auto r = static_cast<std::size_t>(row);
      const std::vector<unsigned char>& keep = rows_.columns_of(row);
      const bool keeps_some = rows_.keeps_some(row);
      bool reaches_scores = q[r] && keeps_some, reaches_out = false;
      for (std::int64_t column = 0; column < columns; ++column) {
        const auto c = static_cast<std::size_t>(column);
        if (k[c] && keep[c] != 0) reaches_scores = true;
        // Out of a row that keeps nothing is 0 times the scale.
        if (v[c] && (!keeps_some || rows_.may_share_a_tile(row, column))) reaches_out = true;
      }
      if (reaches_scores) reach.scores.at(b_, h_, row, 0) = 1;
      if (reaches_scores || reaches_out) reach.out.at(b_, h_, row, 0) = 1;
    }
  }

 private:
  const DenseProblem& problem_;
  std::int64_t b_, h_;
  KeptRows<float> rows_;
};

}  // namespace

bool is_odd_scale(double scale) {
  return !std::isfinite(round_to(DType::f32, scale));
}

bool is_odd_out_scale(double scale) {
  return is_odd_scale(scale) || std::fabs(scale) < 0x1p-126;
}

std::optional<ReachOfScales> reach_of_odd_scales(const DenseProblem& problem,
                                                 const RowSnippets<float>& snippets,
                                                 const std::array<std::int64_t, 2>& block) {
  const bool has_odd_out =
      std::any_of(problem.out_scales.begin(), problem.out_scales.end(), is_odd_out_scale);
  const bool has_odd = problem.q_scales.odd || problem.k_scales.odd || problem.v_scales.odd;
  if (!has_odd && !has_odd_out) return std::nullopt;
  const Values& q = problem.q;
  ReachOfScales reach{.scores = Values::zeros(q.batch, q.heads, q.rows, 1),
                      .out = Values::zeros(q.batch, q.heads, q.rows, 1)};
  for (std::int64_t b = 0; b < q.batch; ++b) {
    for (std::int64_t h = 0; h < q.heads; ++h) {
      if (has_odd) HeadReach(problem, snippets, block, b, h).mark(reach);
      if (!has_odd_out || !is_odd_out_scale(problem.out_scales[static_cast<std::size_t>(h)])) {
        continue;
      }
      std::fill_n(reach.out.row(b, h, 0), q.rows, 1.0);
    }
  }
  return reach;
}

}  // namespace tilewright::verify
