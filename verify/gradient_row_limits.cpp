#include "verify/gradient_row_limits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "verify/gradient_rule.hpp"

namespace tilewright::verify {
namespace {

constexpr double kLimitOfFloat = std::numeric_limits<float>::max();

void mark_row(double* row, std::int64_t width, double mark) {
  for (std::int64_t i = 0; i < width; ++i) row[i] = std::max(row[i], mark);
}

void mark_nan(const std::vector<double>& cells, double mark, std::vector<double>& marks) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (std::isnan(cells[i])) marks[i] = std::max(marks[i], mark);
  }
}

}  // namespace

double size_of_dot(const double* a, const double* b, std::int64_t width) {
  double sum = 0;
  for (std::int64_t d = 0; d < width; ++d) sum += std::fabs(a[d] * b[d]);
  return sum;
}

GradientRowLimits::GradientRowLimits(const DenseProblem& problem, const GradientInputs& inputs,
                                     const RowSlopes<double>& slopes, const FloatSearch& search,
                                     GradientValues& overflow)
    : problem_(problem),
      slopes_(slopes),
      search_(search),
      overflow_(overflow),
      scores_may_overflow_(
          is_too_large(problem.q.greatest_magnitude() * problem.k.greatest_magnitude() *
                       static_cast<double>(problem.q.width))),
      products_may_overflow_(inputs.dout.greatest_magnitude() * problem.v.greatest_magnitude() *
                                 static_cast<double>(problem.v.width) >=
                             kLimitOfFloat),
      float_scores_(static_cast<std::size_t>(problem.k.rows)),
      float_values_(float_scores_.size()),
      marked_(float_scores_.size()),
      float_dy_(float_scores_.size()),
      infinite_(static_cast<std::size_t>(inputs.cells)),
      unknown_(infinite_.size()),
      in_float_(infinite_.size()) {}

bool GradientRowLimits::is_known(const GradientRow<double>& row) {
  if (!score_overflows(row)) return true;
  mark_unknown(row);
  return false;
}

bool GradientRowLimits::is_too_large(double size) const {
  return std::isfinite(size) && std::max(size, size * std::fabs(problem_.scale)) >= kLimitOfFloat;
}

// Whether float32 overflows in a kept score's products, or in what score_mod makes of it, or rounds
// the greatest score by more than a weight can bear (kShareOfScore).
bool GradientRowLimits::score_overflows(const GradientRow<double>& row) {
  constexpr double kGreatestScore = 0x1p22;
  if (row.maximum >= kGreatestScore) return true;
  if (scores_may_overflow_) {
    for (std::size_t c = 0; c < row.columns(); ++c) {
      if (row.keep[c] != 0 && is_too_large(size_of_dot(row.q(), row.k(c), problem_.q.width))) {
        return true;
      }
    }
  }
  if (search_.snippets == nullptr) return false;
  std::vector<unsigned char> unused(row.columns());
  for (std::size_t c = 0; c < row.columns(); ++c) {
    float_scores_[c] = static_cast<float>(row.scores[c]);
  }
  (*search_.snippets)(row.b, row.h, row.row, float_scores_.data(), float_values_.data(),
                      unused.data());
  for (std::size_t c = 0; c < row.columns(); ++c) {
    if (row.keep[c] != 0 && std::isfinite(row.modified[c]) && !std::isfinite(float_values_[c])) {
      return true;
    }
  }
  return false;
}

void GradientRowLimits::mark_unknown(const GradientRow<double>& row) {
  constexpr double kMark = GradientSizes::kUnknown;
  mark_row(row.dq(overflow_), problem_.q.width, kMark);
  for (std::size_t c = 0; c < row.columns(); ++c) {
    marked_[c] = row.keep[c] != 0 ? std::numeric_limits<double>::quiet_NaN() : 0;
    if (row.keep[c] == 0) continue;
    mark_row(row.dk(overflow_, c), problem_.k.width, kMark);
    mark_row(row.dv(overflow_, c), problem_.v.width, kMark);
  }
  if (unknown_.empty()) return;
  slopes_.add(row.b, row.h, row.row, row.scores.data(), marked_.data(), unknown_.data());
}

void GradientRowLimits::look(const GradientRow<double>& row, const std::vector<double>& sizes,
                             double delta_size) {
  constexpr double kMark = GradientSizes::kMayBeInfinite;
  if (search_.slopes != nullptr) {
    search_.slopes->slopes(row.b, row.h, row.row, float_scores_.data(), float_values_.data());
  }
  for (std::size_t c = 0; c < row.columns(); ++c) {
    marked_[c] = 0;
    const bool is_infinite =
        row.p[c] == 0 ? dropped_overflows(row, c, delta_size) : overflows(row, c, sizes[c]);
    if (!is_infinite) continue;
    mark_row(row.dq(overflow_), problem_.q.width, kMark);
    mark_row(row.dk(overflow_, c), problem_.k.width, kMark);
    marked_[c] = std::numeric_limits<double>::quiet_NaN();
  }
  if (infinite_.empty()) return;
  slopes_.add(row.b, row.h, row.row, row.scores.data(), marked_.data(), infinite_.data());
  if (search_.slopes != nullptr) add_in_float(row);
}

// A term that the reference has as NaN or infinite says nothing of float32.
void GradientRowLimits::add_in_float(const GradientRow<double>& row) {
  for (std::size_t c = 0; c < row.columns(); ++c) {
    float_dy_[c] = std::isfinite(row.dy[c]) ? static_cast<float>(row.dy[c]) : 0.0f;
  }
  search_.slopes->add(row.b, row.h, row.row, float_scores_.data(), float_dy_.data(),
                      in_float_.data());
}

// Whether float32 overflows in the element's dX or on the way there.
bool GradientRowLimits::overflows(const GradientRow<double>& row, std::size_t c,
                                  double size) const {
  const double slope = std::fabs(row.slope[c]);
  if (!std::isfinite(size) || !std::isfinite(slope)) return false;
  if (search_.slopes != nullptr && !std::isfinite(float_values_[c])) return true;
  const double dx = row.p[c] * size * slope;
  return size >= kLimitOfFloat || slope >= kLimitOfFloat ||
         dx * std::max(1.0, std::fabs(problem_.scale)) >= search_.greatest_dx;
}

// Of an element without a weight, of which kernels compute dP - delta too: 0 times infinity is NaN.
bool GradientRowLimits::dropped_overflows(const GradientRow<double>& row, std::size_t c,
                                          double delta_size) const {
  double size = delta_size;
  if (products_may_overflow_) size += size_of_dot(row.dout(), row.v(c), problem_.v.width);
  return std::isfinite(size) && size >= kLimitOfFloat;
}

void GradientRowLimits::mark_cells(GradientSizes& sizes) const {
  std::vector<double>& marks = sizes.overflow.named;
  mark_nan(infinite_, GradientSizes::kMayBeInfinite, marks);
  mark_nan(unknown_, GradientSizes::kUnknown, marks);
  for (std::size_t i = 0; i < in_float_.size(); ++i) {
    if (std::isfinite(in_float_[i])) continue;
    marks[i] = std::max(marks[i], GradientSizes::kMayBeInfinite);
    sizes.derivative_overflow[i] = 1;
  }
}

}  // namespace tilewright::verify
