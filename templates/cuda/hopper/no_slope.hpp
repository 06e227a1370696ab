#pragma once

#include "cuda/attention/modify.hpp"
#include "cuda/attention/softmax.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/store/row_ends.hpp"

// In place of slope.hpp where score_mod has no slope.

namespace tw_kernel {

struct Slope {};

TW_INLINE Slope find_slope(const SnippetInputs&, float, float) {
  return {};
}
TW_INLINE void start_scores(const Slope&, float (&)[kRows][kColumns]) {}
TW_INLINE float slope_shift(const SnippetInputs&, const Slope&, int) {
  return 0.0f;
}
TW_INLINE GreatestScores unclamp_slope(const SnippetInputs&, const Slope&, float, const Softmax&,
                                       const GreatestScores& greatest) {
  return greatest;
}

}  // namespace tw_kernel
