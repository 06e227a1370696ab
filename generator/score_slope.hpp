#pragma once

#include <string>

#include "spec.hpp"

namespace tilewright {

/// A score_mod of the form `score + slope * (kv_idx - q_idx)` whose slope names neither index, like
/// ALiBi's `slopes[h]`. Most of such a term is alike for all elements of a thread, and the rest a
/// constant times the slope (templates/cuda/hopper/slope.hpp).
struct ScoreSlope {
  std::string score_mod;  ///< gives the slope alone: blanks stand for all else, so places in it
                          ///< are as before. Without a slope, as it was
  int sign = 0;           ///< 1 or -1, of slope * (kv_idx - q_idx) in the sum; 0: there is none
};

/// Finds the slope by the text, from which factors were taken (score_factors.hpp). What it does not
/// understand it leaves alone, and all of it where the spec wants precise_math, as results differ
/// in the last bits.
ScoreSlope take_score_slope(const Spec& spec);

/// Whether a kernel for Hopper has a slope for this spec. It divides it by the scale of scores,
/// which must be positive then, and not far from 1.
bool has_score_slope(const Spec& spec);

}  // namespace tilewright
