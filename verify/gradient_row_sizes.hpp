#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gradient_row.hpp"
#include "gradient_sweep.hpp"
#include "kinks.hpp"

namespace tilewright::verify {

/// Measures how large the terms of gradients are, row by row: GradientSizes but for its overflow.
/// For one thread.
class GradientRowSizes {
 public:
  /// All arguments must outlive it.
  GradientRowSizes(const DenseProblem& problem, const GradientInputs& inputs,
                   const RowSlopes<double>& slopes, const FloatSearch& search,
                   GradientSizes& sizes);

  /// Of a row that was differentiated.
  void add(const GradientRow<double>& row);

  /// Of the row that was added: of each element with a weight, the terms of dP and delta by
  /// magnitude, and of delta alone.
  const std::vector<double>& of_dy() const { return of_dy_; }
  double of_delta() const { return of_delta_; }

  /// What the rows gave to cells of buffers and scalars, and their greatest scores.
  void add_cells_to(GradientSizes& sizes) const;

 private:
  void look_at_scores(const GradientRow<double>& row);
  void mark_undefined(const GradientRow<double>& row);
  bool look_for_kinks(const GradientRow<double>& row);
  void add_element(const GradientRow<double>& row, std::size_t c);
  void add_lost(const GradientRow<double>& row, std::size_t c);
  void add_ambiguity(const GradientRow<double>& row, std::size_t c);
  void add_to_cells(const GradientRow<double>& row, bool has_kinks);
  void add_float_terms(const GradientRow<double>& row);

  const DenseProblem& problem_;
  const GradientInputs& inputs_;
  const RowSlopes<double>& slopes_;
  const FloatSearch& search_;
  GradientSizes& sizes_;
  std::optional<Kinks> kinks_;
  std::vector<double> of_dy_, weight_, own_, lost_, errors_, of_products_;
  std::vector<double> undefined_elements_;  // NaN, else 0
  double of_delta_ = 0;
  double share_of_terms_ = 0;  // what fast functions may change of the row's
  std::vector<double> row_scores_ = {};
  std::vector<double> terms_, owns_, magnitudes_, in_float_, ambiguous_, undefined_;  // of cells
};

}  // namespace tilewright::verify
