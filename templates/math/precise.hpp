#pragma once

#include "kernel/builtins.hpp"
#include "kernel/language.hpp"
#include "kernel/interpretation.hpp"

// The functions of precise interpretations: the C library's, in the precision of the score.

namespace tw_snippet {

#define TW_PRECISE(name)                                                               \
  TW_INLINE tw_real name(tw_real x) {                                                  \
    return sizeof(tw_real) == sizeof(float) ? __builtin_##name##f(static_cast<float>(x)) \
                                            : __builtin_##name(x);                     \
  }
TW_PRECISE(exp)
TW_PRECISE(exp2)
TW_PRECISE(log)
TW_PRECISE(log2)
TW_PRECISE(tanh)
TW_PRECISE(sin)
TW_PRECISE(cos)
TW_PRECISE(tan)
TW_PRECISE(erf)
TW_PRECISE(erfc)
TW_PRECISE(log1p)
TW_PRECISE(expm1)
#undef TW_PRECISE

TW_INLINE tw_real pow(tw_real x, tw_real y) {
  return sizeof(tw_real) == sizeof(float)
             ? __builtin_powf(static_cast<float>(x), static_cast<float>(y))
             : __builtin_pow(x, y);
}

TW_INLINE tw_real tw_fmod(tw_real a, tw_real b) {
  return sizeof(tw_real) == sizeof(float)
             ? __builtin_fmodf(static_cast<float>(a), static_cast<float>(b))
             : __builtin_fmod(a, b);
}

// As in Python: the quotient is rounded down, and the remainder has b's sign.
TW_INLINE tw_real tw_real_floor_mod(tw_real a, tw_real b) {
  const tw_real rest = tw_fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
TW_INLINE tw_real tw_real_floor_div(tw_real a, tw_real b) {
  if (b == 0) return a / b;
  const tw_real rest = tw_fmod(a, b);
  tw_real whole = (a - rest) / b;  // but for its rounding
  if (rest != 0 && (rest < 0) != (b < 0)) whole -= 1;
  const tw_real below = sizeof(tw_real) == sizeof(float)
                            ? __builtin_floorf(static_cast<float>(whole))
                            : __builtin_floor(whole);
  return 2 * (whole - below) > 1 ? below + 1 : below;
}

}  // namespace tw_snippet
