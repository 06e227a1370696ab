#pragma once

#include <cstdint>
#include <vector>

#include "attention_values.hpp"

namespace tilewright::verify {

/// What the reference says of each row, for the bounds of that row alone. Of [batch, num_q_heads,
/// q_len, 1] but for `lost`. None of them has elements where all rows share their bounds.
struct BoundSizes {
  /// The greatest magnitude of the finite modified scores that were kept and have a weight of at
  /// least kLeastWeight of the greatest one's.
  Values scores = {};
  /// The greatest |q| |k| |scale| of the same scores, with the lengths of a row of q and of k: what
  /// the products of a score add up to by magnitude is at most this.
  Values products = {};
  /// The greatest |out| whatever the weights are: the greatest |v| that the row keeps, times
  /// dropout's factor.
  Values values = {};
  /// Of out: what the weights below kLeastSureWeight bring, by magnitude.
  Values lost = {};

  /// @param value_dim columns of out
  static BoundSizes zeros(std::int64_t batch, std::int64_t heads, std::int64_t rows,
                          std::int64_t value_dim);
};

/// Half of float32's least positive number: a smaller weight is 0 there, and its score may have any
/// error.
inline constexpr double kLeastWeight = 0x1p-150;

/// A smaller weight may be 0 in a kernel. exp2 gives 0 for what is below 2^-126, on GPUs and on
/// CPUs. A kernel's weights are relative to the greatest score so far, which may be 2^8 below the
/// row's, and a sink joins the row in the end, with one factor for all of the row's weights. A
/// factor of 2 is for the errors of the scores.
inline constexpr double kLeastSureWeight = 0x1p-117;

/// The greatest score of a typical row: of rows above 0 and below kWildScore, the greatest that is
/// at most four times their median. 0 without any.
/// @param scores the greatest of each row, as BoundSizes has them
double typical_score(std::vector<double> scores);

/// With an error of 2^-11 of such a score a row's weights may be anything.
inline constexpr double kWildScore = 0x1p11;

}  // namespace tilewright::verify
