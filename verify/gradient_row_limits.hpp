#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gradient_row.hpp"
#include "gradient_sweep.hpp"

namespace tilewright::verify {

/// Finds what float32 does not hold on the way to gradients (GradientSizes::overflow), row by row.
/// For one thread.
class GradientRowLimits {
 public:
  /// All arguments must outlive it.
  GradientRowLimits(const DenseProblem& problem, const GradientInputs& inputs,
                    const RowSlopes<double>& slopes, const FloatSearch& search,
                    GradientValues& overflow);

  /// Looks at the scores of a row that was weighed. Where nothing is known of its elements, marks
  /// them and returns false.
  bool is_known(const GradientRow<double>& row);
  /// Looks at what comes after the scores, of a row that was differentiated. Before the next row.
  /// @param sizes      of each element with a weight, the terms of dP and delta by magnitude
  /// @param delta_size of delta alone
  void look(const GradientRow<double>& row, const std::vector<double>& sizes, double delta_size);

  /// Marks what the rows gave to cells of buffers and scalars.
  void mark_cells(GradientSizes& sizes) const;

 private:
  bool is_too_large(double size) const;
  bool score_overflows(const GradientRow<double>& row);
  void mark_unknown(const GradientRow<double>& row);
  bool overflows(const GradientRow<double>& row, std::size_t c, double size) const;
  bool dropped_overflows(const GradientRow<double>& row, std::size_t c, double delta_size) const;
  void add_in_float(const GradientRow<double>& row);

  const DenseProblem& problem_;
  const RowSlopes<double>& slopes_;
  const FloatSearch& search_;
  GradientValues& overflow_;
  bool scores_may_overflow_, products_may_overflow_;
  std::vector<float> float_scores_, float_values_;
  std::vector<double> marked_;  // NaN where an element of the row overflows
  std::vector<float> float_dy_;
  std::vector<double> infinite_, unknown_;  // cells that are NaN
  std::vector<double> in_float_;            // cells with float32's derivatives
};

/// The sum of the products' magnitudes. What float32 loses of a dot product is a share of it, also
/// where the product itself cancels.
double size_of_dot(const double* a, const double* b, std::int64_t width);

}  // namespace tilewright::verify
