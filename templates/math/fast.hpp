#pragma once

#include "kernel/builtins.hpp"
#include "kernel/elementary.hpp"
#include "kernel/language.hpp"
#include "kernel/interpretation.hpp"
#include "math/floor_division.hpp"

// The functions of fast_math interpretations: our own where one vectorises, the C library's elsewhere.

namespace tw_snippet {

TW_INLINE tw_real exp(tw_real x) { return tw_math::exp(x); }
TW_INLINE tw_real exp2(tw_real x) { return tw_math::exp2(x); }
TW_INLINE tw_real log(tw_real x) { return tw_math::log(x); }
TW_INLINE tw_real log2(tw_real x) { return tw_math::log2(x); }
TW_INLINE tw_real tanh(tw_real x) { return tw_math::tanh(x); }
TW_INLINE tw_real sin(tw_real x) { return tw_math::sin(x); }
TW_INLINE tw_real cos(tw_real x) { return tw_math::cos(x); }
TW_INLINE tw_real tan(tw_real x) { return tw_math::tan(x); }
TW_INLINE tw_real erf(tw_real x) { return tw_math::erf(x); }
TW_INLINE tw_real erfc(tw_real x) { return tw_math::erfc(x); }
TW_INLINE tw_real log1p(tw_real x) { return tw_math::log1p(x); }
TW_INLINE tw_real expm1(tw_real x) { return tw_math::expm1(x); }
TW_INLINE tw_real tw_real_floor_div(tw_real a, tw_real b) { return tw_math::floor_div(a, b); }
TW_INLINE tw_real tw_real_floor_mod(tw_real a, tw_real b) { return tw_math::floor_mod(a, b); }
TW_INLINE tw_real pow(tw_real x, tw_real y) { return __builtin_powf(x, y); }

}  // namespace tw_snippet
