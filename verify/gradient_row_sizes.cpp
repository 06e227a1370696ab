#include "verify/gradient_row_sizes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "verify/gradient_row_limits.hpp"
#include "verify/gradient_rule.hpp"
#include "verify/gradient_sums.hpp"

namespace tilewright::verify {
namespace {

void add_magnitudes(double* to, const double* from, std::int64_t width, double times) {
  for (std::int64_t d = 0; d < width; ++d) to[d] += std::fabs(times * from[d]);
}

}  // namespace

GradientRowSizes::GradientRowSizes(const DenseProblem& problem, const GradientInputs& inputs,
                                   const RowSlopes<double>& slopes, const FloatSearch& search,
                                   GradientSizes& sizes)
    : problem_(problem),
      inputs_(inputs),
      slopes_(slopes),
      search_(search),
      sizes_(sizes),
      of_dy_(static_cast<std::size_t>(problem.k.rows)),
      weight_(of_dy_.size()),
      own_(of_dy_.size()),
      lost_(of_dy_.size()),
      errors_(of_dy_.size()),
      of_products_(of_dy_.size()),
      undefined_elements_(of_dy_.size()),
      terms_(static_cast<std::size_t>(inputs.cells)),
      owns_(terms_.size()),
      magnitudes_(terms_.size()),
      in_float_(search.has_float_terms ? terms_.size() : 0),
      ambiguous_(terms_.size()),
      undefined_(terms_.size()) {
  if (search.slopes != nullptr) kinks_.emplace(slopes, *search.slopes, of_dy_.size());
}

void GradientRowSizes::add(const GradientRow<double>& row) {
  look_at_scores(row);
  if (std::isnan(row.lse)) mark_undefined(row);
  of_delta_ = inputs_.dlse ? std::fabs(inputs_.dlse->at(row.b, row.h, row.row, 0)) : 0;
  for (std::size_t d = 0; d < row.out.size(); ++d) {
    of_delta_ += std::fabs(row.dout()[d] * row.out[d]);
  }
  const bool has_kinks = look_for_kinks(row);
  for (std::size_t c = 0; c < row.columns(); ++c) {
    of_dy_[c] = weight_[c] = own_[c] = lost_[c] = 0;
    if (row.p[c] == 0) continue;
    of_dy_[c] = size_of_dot(row.dout(), row.v(c), problem_.v.width) * row.factor[c] + of_delta_;
    weight_[c] = row.p[c] * of_dy_[c];
    own_[c] = kShareOfScore * row.maximum * std::fabs(row.dy[c]) + share_of_terms_ * weight_[c];
    add_element(row, c);
    if (row.p[c] < kLeastSureWeight) add_lost(row, c);
    if (has_kinks) add_ambiguity(row, c);
  }
  if (!terms_.empty()) add_to_cells(row, has_kinks);
}

void GradientRowSizes::look_at_scores(const GradientRow<double>& row) {
  share_of_terms_ = 0;
  if (search_.share_of_terms == 0) return;
  double greatest = 0;
  for (std::size_t c = 0; c < row.columns(); ++c) {
    if (!(row.p[c] >= kLeastWeight) || !std::isfinite(row.modified[c])) continue;
    greatest = std::max(greatest, std::fabs(row.modified[c]));
  }
  row_scores_.push_back(greatest);
  share_of_terms_ = search_.share_of_terms * greatest;
}

// Where kernels take e^(-inf - lse) for the weight of an element with a score of -inf.
void GradientRowSizes::mark_undefined(const GradientRow<double>& row) {
  for (std::size_t c = 0; c < row.columns(); ++c) {
    const bool is_undefined = row.keep[c] != 0 && !row.has_weight(c);
    undefined_elements_[c] = is_undefined ? std::numeric_limits<double>::quiet_NaN() : 0;
    if (!is_undefined) continue;
    std::fill_n(row.dk(sizes_.undefined, c), problem_.k.width, 1.0);
    std::fill_n(row.dv(sizes_.undefined, c), problem_.v.width, 1.0);
  }
  if (undefined_.empty()) return;
  slopes_.add(row.b, row.h, row.row, row.scores.data(), undefined_elements_.data(),
              undefined_.data());
}

// Whether the row has elements whose derivative depends on rounding.
bool GradientRowSizes::look_for_kinks(const GradientRow<double>& row) {
  if (!kinks_) return false;
  const std::int64_t width = problem_.q.width;
  for (std::size_t c = 0; c < errors_.size(); ++c) {
    const double size = size_of_dot(row.q(), row.k(c), width);
    errors_[c] = static_cast<double>(width) * 0x1p-24 * size * std::fabs(problem_.scale) +
                 search_.share_of_score * std::fabs(row.scores[c]);
    if (row.p[c] == 0 || std::isnan(row.p[c]) || !std::isfinite(errors_[c])) errors_[c] = 0;
  }
  return kinks_->look(row.b, row.h, row.row, row.scores, errors_);
}

void GradientRowSizes::add_element(const GradientRow<double>& row, std::size_t c) {
  const double of_score = std::fabs(row.slope[c]) * std::fabs(problem_.scale);
  const auto add = [&](GradientValues& to, double of_dx, double of_p) {
    add_magnitudes(row.dq(to), row.k(c), problem_.q.width, of_dx);
    add_magnitudes(row.dk(to, c), row.q(), problem_.q.width, of_dx);
    add_magnitudes(row.dv(to, c), row.dout(), problem_.v.width, of_p);
  };
  add(sizes_.terms, weight_[c] * of_score, row.met[c]);
  add(sizes_.own, own_[c] * of_score, row.met[c] * (kShareOfScore * row.maximum + share_of_terms_));
}

// All that a weight brings which may be 0 in a kernel.
void GradientRowSizes::add_lost(const GradientRow<double>& row, std::size_t c) {
  lost_[c] = std::fabs(row.dy[c]);
  const double of_dx = lost_[c] * std::fabs(row.slope[c] * problem_.scale);
  add_magnitudes(row.dq(sizes_.ambiguous), row.k(c), problem_.q.width, of_dx);
  add_magnitudes(row.dk(sizes_.ambiguous, c), row.q(), problem_.q.width, of_dx);
  add_magnitudes(row.dv(sizes_.ambiguous, c), row.dout(), problem_.v.width, row.met[c]);
}

// What is ambiguous is rounded too.
void GradientRowSizes::add_ambiguity(const GradientRow<double>& row, std::size_t c) {
  const double size = std::fabs(row.dy[c] * problem_.scale) * kinks_->jumps()[c];
  if (size == 0) return;
  const double jump = std::fabs(problem_.scale) * kinks_->jumps()[c];
  const auto add = [&](GradientValues& to, double of_dx) {
    add_magnitudes(row.dq(to), row.k(c), problem_.q.width, of_dx);
    add_magnitudes(row.dk(to, c), row.q(), problem_.q.width, of_dx);
  };
  add(sizes_.ambiguous, size);
  add(sizes_.terms, weight_[c] * jump);
  add(sizes_.own, own_[c] * jump);
}

void GradientRowSizes::add_to_cells(const GradientRow<double>& row, bool has_kinks) {
  const double* const scores = row.scores.data();
  slopes_.add(row.b, row.h, row.row, scores, weight_.data(), terms_.data());
  slopes_.add_magnitudes(row.b, row.h, row.row, scores, own_.data(), owns_.data());
  slopes_.add_magnitudes(row.b, row.h, row.row, scores, lost_.data(), ambiguous_.data());
  slopes_.add_magnitudes(row.b, row.h, row.row, scores, row.dy.data(), magnitudes_.data());
  if (search_.has_float_terms) add_float_terms(row);
  if (!has_kinks) return;
  kinks_->add(row.scores, row.dy, ambiguous_);
  kinks_->add(row.scores, weight_, terms_);
  kinks_->add(row.scores, own_, owns_);
}

// Each term by what its P and its dP - delta may be off by. Forward's lse has errors of the row's
// scores too.
void GradientRowSizes::add_float_terms(const GradientRow<double>& row) {
  const double of_scores = kShareOfProducts * static_cast<double>(problem_.q.width);
  const double of_dp =
      std::max(kShareOfTerms, kShareOfProducts * static_cast<double>(problem_.v.width));
  const double of_indices = search_.slopes == nullptr ? 0 : kErrorOfIndices;
  double greatest = 0;
  for (std::size_t c = 0; c < row.columns(); ++c) {
    of_products_[c] = 0;
    if (row.p[c] == 0) continue;
    of_products_[c] = of_scores * size_of_dot(row.q(), row.k(c), problem_.q.width) *
                      std::fabs(problem_.scale * row.slope[c]);
    if (row.p[c] >= kLeastWeight) greatest = std::max(greatest, of_products_[c]);
  }
  for (std::size_t c = 0; c < row.columns(); ++c) {
    const double error = of_products_[c] + greatest + of_indices;
    of_products_[c] = own_[c] + error * std::fabs(row.dy[c]) + of_dp * weight_[c];
  }
  slopes_.add_magnitudes(row.b, row.h, row.row, row.scores.data(), of_products_.data(),
                         in_float_.data());
}

void GradientRowSizes::add_cells_to(GradientSizes& sizes) const {
  add_cells(terms_, false, sizes.terms.named);
  add_cells(owns_, false, sizes.own.named);
  add_cells(magnitudes_, false, sizes.named_magnitudes);
  add_cells(in_float_, false, sizes.named_in_float);
  add_cells(ambiguous_, false, sizes.ambiguous.named);
  add_cells(undefined_, false, sizes.undefined.named);
  sizes.row_scores.insert(sizes.row_scores.end(), row_scores_.begin(), row_scores_.end());
}

}  // namespace tilewright::verify
