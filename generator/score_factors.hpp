#pragma once

#include <string>

#include "spec.hpp"

namespace tilewright {

/// score_mod without the numbers by which it multiplies or divides its score and its result, like
/// both in `50 * tanh(score / 50)`. A kernel multiplies scores by a scale and results by log2(e) in
/// any case, so there they cost nothing.
struct ScoreFactors {
  std::string score_mod;  ///< blanks stand for what was taken, so places in it are as before
  double of_score = 1;
  double of_result = 1;     ///< > 0
  bool is_bounded = false;  ///< what score_mod gives is between -1 and 1, before of_result
};

/// Finds them in the text: a number beside the only `score`, and a number beside a function of real
/// numbers that is the whole result, which is bounded if that is tanh, sin or cos. What it does not
/// understand it leaves alone, and all of it where the spec wants precise_math, as results differ
/// in the last bits.
ScoreFactors take_score_factors(const Spec& spec);

}  // namespace tilewright
