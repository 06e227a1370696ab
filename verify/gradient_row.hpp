#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "gradient_sweep.hpp"

namespace tilewright::verify {

/// One row of q in the backward pass, its sums in Score. For one thread.
template <typename Score>
struct GradientRow {
  /// All arguments must outlive it.
  GradientRow(const DenseProblem& problem, const GradientInputs& inputs,
              const RowSnippets<Score>& snippets, const RowSlopes<Score>& slopes,
              const GradientRounding<Score>& rounding);

  /// Computes the row's scores, weights and out. @return whether it keeps a score above -inf
  bool weigh(std::int64_t batch, std::int64_t head, std::int64_t row_of_q);
  /// Computes what dY is. After weigh, of a row that keeps some.
  void differentiate();
  /// Adds the row's terms. @param cells of GradientInputs::named
  void add_to(GradientValues& values, std::vector<double>& cells) const;

  /// An element that is kept with a score of -inf has none, as in forward, whatever lse is.
  bool has_weight(std::size_t c) const;

  std::size_t columns() const { return keep.size(); }
  const double* q() const { return problem.q.row(b, h, row); }
  const double* k(std::size_t c) const { return row_of(problem.k, k_b, c); }
  const double* v(std::size_t c) const { return row_of(problem.v, v_b, c); }
  const double* dout() const { return inputs.dout.row(b, h, row); }
  double* dq(GradientValues& values) const { return values.dq.row(b, h, row); }
  double* dk(GradientValues& values, std::size_t c) const {
    return values.dk.row(k_b, h_kv, static_cast<std::int64_t>(c));
  }
  double* dv(GradientValues& values, std::size_t c) const {
    return values.dv.row(v_b, h_kv, static_cast<std::int64_t>(c));
  }

  const DenseProblem& problem;
  const GradientInputs& inputs;
  std::int64_t b = 0, h = 0, row = 0;
  std::int64_t k_b = 0, v_b = 0, h_kv = 0;  ///< where its k and v lie
  std::vector<unsigned char> keep;          ///< not 0 where the column is kept
  std::vector<Score> scores, modified;      ///< before and after score_mod
  Score lse = 0;
  Score maximum = 0;  ///< the magnitude of the greatest score, where that is finite
  /// The weights, dropout's factors of them, and those that meet v. Of a weight of 0 there are no
  /// others.
  std::vector<Score> p, factor, met;
  std::vector<Score> out;
  std::vector<Score> slope;  ///< score_mod's derivative by the score
  std::vector<Score> dy;     ///< the gradient of what score_mod gives; 0 without a weight

 private:
  const double* row_of(const Values& values, std::int64_t batch, std::size_t c) const {
    return values.row(batch, h_kv, static_cast<std::int64_t>(c));
  }
  void compute_weights();
  void compute_out();
  Score delta() const;

  const RowSnippets<Score>& snippets_;
  const RowSlopes<Score>& slopes_;
  const std::function<Score(Score)>& round_;
  const std::function<Score(Score)>& round_out_;
};

extern template struct GradientRow<float>;
extern template struct GradientRow<double>;

}  // namespace tilewright::verify
