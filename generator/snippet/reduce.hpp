#pragma once

#include <string>
#include <utility>
#include <vector>

#include "../spec/spec.hpp"
#include "tree.hpp"

namespace tilewright::snippet {

/// Sizes of factors between which products stay far from float's limits.
inline constexpr double kLeastFactor = 0x1p-20;
inline constexpr double kGreatestFactor = 0x1p20;

/// A product of numbers and f32 scalars of the call.
struct Factor {
  double literal = 1;
  std::vector<std::pair<std::string, bool>> scalars = {};  ///< name; whether it divides

  bool is_one() const { return literal == 1 && scalars.empty(); }
  friend bool operator==(const Factor&, const Factor&) = default;
};

/// score_mod without what a kernel does anyway. A kernel multiplies scores by a scale and results
/// by log2(e), so factors cost nothing there. Of `score + slope * (kv_idx - q_idx)`, where the
/// slope names neither index, most is the same for all elements of a thread
/// (templates/cuda/hopper/slope.hpp).
struct ScoreReduction {
  SnippetTree rest;  ///< gives the slope alone if there is one
  Factor of_score = {};
  Factor of_result = {};
  bool is_bounded = false;  ///< what the rest gives is between -1 and 1
  int slope_sign = 0;       ///< 1 or -1, of slope * (kv_idx - q_idx) in the sum; 0: no slope

  bool has_factors() const { return !of_score.is_one() || !of_result.is_one(); }
};

/// Takes out a factor that multiplies every `score`, a factor that multiplies a function that is
/// the whole result, or a slope. Literals are between kLeastFactor and kGreatestFactor.
ScoreReduction reduce(const SnippetTree& tree, const Spec& spec);

}  // namespace tilewright::snippet
