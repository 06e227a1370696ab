#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gradient_sweep.hpp"

namespace tilewright::verify {

// A kernel computes a score in float32, so it may find a score on the other side of a kink of
// score_mod (max, abs, a comparison) than the double reference does, and its derivative is then
// that side's: both are right. An element is ambiguous if score_mod's derivative jumps among scores
// that float32 may give, x - e to x + e:
//
//   e = width 2^-24 sum |q k| |scale| + 2^-20 |x|
//
//   the first term bounds the error of a dot product of `width` terms in any order; the second
//   allows for what score_mod itself rounds before it compares. Fast functions add 2^-11 |x|.
//
// A jump is told from a slope that changes smoothly by its width: over 4 e a smooth slope changes
// about four times as much as over e, and a jump as much. Where float32 gives another derivative
// than double by more than 2^-10 of it, by more than a smooth slope changes, and by more than 2^-21
// of the row's greatest derivative, score_mod's own rounding has crossed the kink. The last is for
// derivatives that cancel: that of tanh(x), 1 - t^2, is near 0 where t is near 1, and t is off by
// two units of 2^-24 and t^2 rounded by one, which is 5 * 2^-24 < 2^-21 of its greatest, 1. Such an
// error is no jump, and the rule's shares of all terms have room for it.

/// Finds the ambiguous elements of rows. For one thread.
class Kinks {
 public:
  /// All arguments must outlive it.
  Kinks(const RowSlopes<double>& in_double, const RowSlopes<float>& in_float, std::size_t columns);

  /// Looks at a row. @param errors  e of each element
  /// @return whether any element is ambiguous
  bool look(std::int64_t b, std::int64_t h, std::int64_t row, const std::vector<double>& scores,
            const std::vector<double>& errors);

  /// Of the row that was looked at: how far the derivative by the score may be off; 0: not.
  const std::vector<double>& jumps() const { return jumps_; }

  /// Adds how far the ambiguous elements' terms of buffers' and scalars' gradients may be off.
  /// @param dy  of each element
  void add(const std::vector<double>& scores, const std::vector<double>& dy,
           std::vector<double>& sums);

 private:
  double greatest_slope() const;
  void slopes_at(double share, const std::vector<double>& scores, std::vector<double>& slopes);
  void take(const std::vector<double>& slopes, std::vector<double>& low, std::vector<double>& high);

  const RowSlopes<double>& in_double_;
  const RowSlopes<float>& in_float_;
  std::int64_t b_ = 0, h_ = 0, row_ = 0;
  std::vector<double> errors_, jumps_, shifted_, middle_, slopes_, low_, high_, far_low_, far_high_;
  std::vector<float> float_scores_, float_slopes_;
};

}  // namespace tilewright::verify
