#include "verify/float_overflow.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "verify/scores.hpp"

namespace tilewright::verify {
namespace {

constexpr double kGreatestFloat = std::numeric_limits<float>::max();
constexpr double kGreatestWeight = 0x1p8;  // templates: kRescaleAbove

// A number as it is stored; 0 where the scale does not say it.
double stored(double value, double scale) {
  const double number = std::fabs(value / scale);
  return scale == 0 || !std::isfinite(number) ? 0 : number;
}

// Of the numbers, before and after their scales.
double greatest_magnitude(const Values& values, const RowScales& scales) {
  double greatest = values.greatest_magnitude();
  if (scales.values.data.empty()) return greatest;
  for (std::size_t i = 0; i < values.data.size(); ++i) {
    const double scale = scales.values.data[i / static_cast<std::size_t>(values.width)];
    greatest = std::max(greatest, stored(values.data[i], scale));
  }
  return greatest;
}

double greatest_scale(const RowScales& scales) {
  return scales.values.data.empty() ? 1 : scales.values.greatest_magnitude();
}

class OverflowSearch {
 public:
  OverflowSearch(const DenseProblem& problem, const RowSnippets<float>& in_float,
                 const RowSnippets<double>& in_double)
      : problem_(problem),
        in_float_(in_float),
        in_double_(in_double),
        scores_may_(
            is_too_large(greatest_magnitude(problem.q, problem.q_scales) *
                             greatest_magnitude(problem.k, problem.k_scales) *
                             static_cast<double>(problem.q.width),
                         greatest_scale(problem.q_scales) * greatest_scale(problem.k_scales))),
        values_may_(greatest_magnitude(problem.v, problem.v_scales) *
                        static_cast<double>(problem.v.rows) * greatest_weight() >=
                    kGreatestFloat),
        scores_(static_cast<std::size_t>(problem.k.rows)),
        modified_(scores_.size()),
        float_scores_(scores_.size()),
        float_modified_(scores_.size()),
        keep_(scores_.size()) {}

  bool finds_none(const AttentionValues& reference, const AttentionValues& naive) const {
    if (scores_may_ || values_may_) return false;
    const Values& q = problem_.q;
    for (std::int64_t b = 0; b < q.batch; ++b) {
      for (std::int64_t h = 0; h < q.heads; ++h) {
        for (std::int64_t row = 0; row < q.rows; ++row) {
          if (is_suspect(reference, naive, b, h, row)) return false;
        }
      }
    }
    return true;
  }

  FloatOverflow run(const AttentionValues& reference, const AttentionValues& naive) {
    const Values& q = problem_.q;
    FloatOverflow found{.rows = Values::zeros(q.batch, q.heads, q.rows, 1),
                        .out = Values::zeros(q.batch, q.heads, q.rows, problem_.v.width)};
    for (std::int64_t b = 0; b < q.batch; ++b) {
      for (std::int64_t h = 0; h < q.heads; ++h) {
        for (std::int64_t row = 0; row < q.rows; ++row) {
          if (scores_may_ || is_suspect(reference, naive, b, h, row)) {
            found.rows.at(b, h, row, 0) = score_overflows(b, h, row) ? 1 : 0;
          }
          if (values_may_) look_at_values(b, h, row, found.out);
        }
      }
    }
    return found;
  }

 private:
  // size: of products of q and k, with their scales. Kernels multiply the stored numbers, and that
  // by the scales, the call's and log2(e), in one factor.
  bool is_too_large(double size, double scales) const {
    constexpr double kLog2E = 1.4426950408889634;
    const double scale = std::fabs(problem_.scale);
    const double factor = scales == 1 ? scale : scale * std::fabs(scales) * kLog2E;
    return std::isfinite(size) && std::isfinite(scales) &&
           std::max({size, size * scale, stored(size, scales), factor}) >= kGreatestFloat;
  }

  double greatest_weight(std::int64_t h) const {
    return kGreatestWeight *
           std::max(1.0, problem_.dropout ? problem_.dropout->keeping_factor(h) : 1.0);
  }

  double greatest_weight() const {
    double result = 0;
    for (std::int64_t h = 0; h < problem_.q.heads; ++h) {
      result = std::max(result, greatest_weight(h));
    }
    return result;
  }

  // Whether naive has no number where the reference has one.
  static bool is_suspect(const AttentionValues& reference, const AttentionValues& naive,
                         std::int64_t b, std::int64_t h, std::int64_t row) {
    return std::isfinite(reference.lse.at(b, h, row, 0)) && !naive.out.is_finite_row(b, h, row);
  }

  bool score_overflows(std::int64_t b, std::int64_t h, std::int64_t row) {
    const std::int64_t k_b = problem_.k.batch == 1 ? 0 : b;
    const std::int64_t h_kv = h / (problem_.q.heads / problem_.k.heads);
    std::vector<double> sizes(scores_.size());
    for (std::size_t c = 0; c < scores_.size(); ++c) {
      const double* const q = problem_.q.row(b, h, row);
      const double* const k = problem_.k.row(k_b, h_kv, static_cast<std::int64_t>(c));
      double sum = 0;
      for (std::int64_t i = 0; i < problem_.q.width; ++i) {
        sum += q[i] * k[i];
        sizes[c] += std::fabs(q[i] * k[i]);
      }
      scores_[c] = sum * problem_.scale;
      float_scores_[c] = static_cast<float>(scores_[c]);
    }
    in_double_(b, h, row, scores_.data(), modified_.data(), keep_.data());
    in_float_(b, h, row, float_scores_.data(), float_modified_.data(), keep_.data());
    bound_scores(modified_);
    for (std::size_t c = 0; c < scores_.size(); ++c) {
      if (keep_[c] == 0) continue;
      const auto column = static_cast<std::int64_t>(c);
      const double scales = problem_.q_scales.at(b, h, row) * problem_.k_scales.at(b, h_kv, column);
      if (is_too_large(sizes[c], scales)) return true;
      if (std::isfinite(modified_[c]) && !std::isfinite(float_modified_[c])) return true;
    }
    return false;
  }

  void look_at_values(std::int64_t b, std::int64_t h, std::int64_t row, Values& out) {
    const std::int64_t h_kv = h / (problem_.q.heads / problem_.k.heads);
    std::fill(float_scores_.begin(), float_scores_.end(), 0.0f);
    in_float_(b, h, row, float_scores_.data(), float_modified_.data(), keep_.data());
    const std::int64_t v_b = problem_.v.batch == 1 ? 0 : b;
    for (std::int64_t i = 0; i < out.width; ++i) {
      double size = 0;
      for (std::size_t c = 0; c < keep_.size(); ++c) {
        if (keep_[c] == 0) continue;
        const auto column = static_cast<std::int64_t>(c);
        const double value = problem_.v.at(v_b, h_kv, column, i);
        size += std::max(std::fabs(value), stored(value, problem_.v_scales.at(b, h_kv, column)));
      }
      if (std::isfinite(size) && size * greatest_weight(h) >= kGreatestFloat)
        out.at(b, h, row, i) = 1;
    }
  }

  const DenseProblem& problem_;
  const RowSnippets<float>& in_float_;
  const RowSnippets<double>& in_double_;
  bool scores_may_, values_may_;
  std::vector<double> scores_, modified_;
  std::vector<float> float_scores_, float_modified_;
  std::vector<unsigned char> keep_;
};

}  // namespace

std::optional<FloatOverflow> float_overflow(const DenseProblem& problem,
                                            const RowSnippets<float>& in_float,
                                            const RowSnippets<double>& in_double,
                                            const AttentionValues& reference,
                                            const AttentionValues& naive) {
  OverflowSearch search(problem, in_float, in_double);
  if (search.finds_none(reference, naive)) return std::nullopt;
  return search.run(reference, naive);
}

}  // namespace tilewright::verify
