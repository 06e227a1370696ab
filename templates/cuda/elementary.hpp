#pragma once

#include "cuda/builtins.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/special_functions.hpp"

// Fast elementary functions: at most two instructions around one of the special function unit.

namespace tw_math {

TW_INLINE float exp(float x) {
  return exp2(x * 1.44269504088896341f);
}
TW_INLINE float log(float x) {
  return log2(x) * 0.693147180559945309f;
}

// x less whole multiples of a period, whose float and what that rounds away are given. Each product is exact in
// its multiply-add. CUDA's own reduction of large angles takes a hundred instructions for each score, and NVRTC
// half a minute for a score_mod with four of them.
TW_INLINE float reduce_angle(float x, float multiples, float period, float rounded_away) {
  return __builtin_fmaf(multiples, -rounded_away, __builtin_fmaf(multiples, -period, x));
}
TW_INLINE float reduce_by_turns(float x) {
  return reduce_angle(x, ::rintf(x * 0.159154943f), 6.28318548f, -1.74845553e-7f);
}
TW_INLINE float sin(float x) {
  return sin_of_reduced(reduce_by_turns(x));
}
TW_INLINE float cos(float x) {
  return cos_of_reduced(reduce_by_turns(x));
}
// With x = n * pi/2 + r, |r| <= pi/4: tan(r), or -1 / tan(r) if n is odd. The sine is a polynomial, as a pole
// shows its relative error.
TW_INLINE float tan(float x) {
  const float n = ::rintf(x * 0.636619772f);
  const float r = __builtin_fmaf(n, 1.71512451e-15f, reduce_angle(x, n, 1.57079637f, -4.37113883e-8f));
  const float r2 = r * r;
  const float s = (-1.951463337e-4f * r2 + 8.332156067e-3f) * r2 - 1.666665454e-1f;
  const float sin_r = s * (r2 * r) + r, cos_r = cos_of_reduced(r);
  const bool is_odd = n != 2.0f * ::rintf(0.5f * n);
  return is_odd ? -cos_r / sin_r : sin_r / cos_r;
}
// CUDA's own.
TW_INLINE float erf(float x) {
  return ::erff(x);
}
TW_INLINE float erfc(float x) {
  return ::erfcf(x);
}
TW_INLINE float log1p(float x) {
  return ::log1pf(x);
}
TW_INLINE float expm1(float x) {
  return ::expm1f(x);
}

}  // namespace tw_math
