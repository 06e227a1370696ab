#pragma once

#include "kernel/builtins.hpp"
#include "kernel/language.hpp"

// floor_div and floor_mod of floats, as in Python: the quotient is rounded down, and the remainder has
// the divisor's sign. Both are exact where the quotient is below 2^22; beyond, the remainder means
// nothing.

namespace tw_math {

struct FloorDivision {
  float quotient;
  float remainder;
};

// First as fmod has it: the quotient is cut off, and the remainder has a's sign. a / b may be off by
// 2 ulp and the quotient then by one, which the remainder's sign or size tells.
TW_INLINE FloorDivision floor_division(float a, float b) {
  const float ratio = a / b;
  const float cut = __builtin_truncf(ratio);
  const float left = cut == 0.0f ? a : __builtin_fmaf(-cut, b, a);
  const float step = ratio < 0.0f ? -1.0f : 1.0f;
  const bool is_high = a < 0.0f ? left > 0.0f : left < 0.0f;
  const bool is_low = __builtin_fabsf(left) >= __builtin_fabsf(b);
  const float whole = is_high ? cut - step : is_low ? cut + step : cut;
  const float rest = is_high ? left + step * b : is_low ? left - step * b : left;
  const bool has_other_sign = b < 0.0f ? rest > 0.0f : rest < 0.0f;
  const float quotient = has_other_sign ? whole - 1.0f : whole;
  // An infinite a has no remainder and so no quotient; one by 0 is infinite.
  return {b == 0.0f ? ratio : rest == rest ? quotient : rest, has_other_sign ? rest + b : rest};
}

TW_INLINE float floor_div(float a, float b) { return floor_division(a, b).quotient; }
TW_INLINE float floor_mod(float a, float b) { return floor_division(a, b).remainder; }

}  // namespace tw_math
