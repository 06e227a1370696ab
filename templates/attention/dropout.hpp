#pragma once

#include "attention/philox.hpp"
#include "kernel/language.hpp"
#include "snippet/scales.hpp"
#include "snippet/snippets.hpp"

// Dropout of weights after the softmax: an element is kept if its random number of 24 bits reaches the probability.
// The number depends on the seed and on where the element lies, so every kernel draws the same ones.

namespace tw_kernel {

// Of one head.
struct Dropout {
  unsigned least;  // of numbers that are kept
  PhiloxKey key;

  TW_MEMBER bool keeps(unsigned word) const { return (word >> 8) >= least; }
};

// p: NaN drops everything, as 1 does
TW_INLINE Dropout make_dropout(float p, unsigned long long seed) {
  constexpr float kNumbers = 0x1p24f;
  const float scaled = p * kNumbers;
  unsigned least = 1u << 24;
  if (scaled < kNumbers) least = scaled > 0.0f ? static_cast<unsigned>(scaled) : 0u;
  if (static_cast<float>(least) < scaled && scaled < kNumbers) ++least;  // rounded up
  return {least, {static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32)}};
}

// What kept weights are multiplied by, so that their mean is what it was. Where p is NaN, none is kept.
TW_INLINE float keeping_factor(float p) {
  return p < 1.0f ? 1.0f / (1.0f - (p < 0.0f ? 0.0f : p)) : 0.0f;
}

// The random words of columns 4 * quad to 4 * quad + 3 of a row.
TW_INLINE PhiloxWords draw_quad(const Dropout& dropout, int quad, int q_idx, int h, int b) {
  return philox({static_cast<unsigned>(quad), static_cast<unsigned>(q_idx), static_cast<unsigned>(h),
                 static_cast<unsigned>(b)},
                dropout.key);
}

TW_INLINE float drop_probability(const tw_snippet::tw_State& state, int b, int h, int h_kv) {
  return tw_snippet::tw_dropout(state, b, h, h_kv, 0);
}

TW_INLINE Dropout find_dropout(const tw_snippet::tw_State& state, int b, int h, int h_kv) {
  return make_dropout(drop_probability(state, b, h, h_kv), tw_snippet::tw_seed(state));
}

}  // namespace tw_kernel
