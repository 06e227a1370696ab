#pragma once

#include "kernel/builtins.hpp"
#include "kernel/functions.hpp"
#include "kernel/language.hpp"
#include "kernel/interpretation.hpp"
#include "snippet/floating.hpp"

// Functions that are the same in every interpretation, and the names with an `f`. An int argument becomes
// tw_real, as in C++ it would become double.

namespace tw_snippet {

constexpr tw_real INFINITY = __builtin_inff();
constexpr tw_real NAN = __builtin_nanf("");

TW_INLINE tw_real sqrt(tw_real x) {
  return sizeof(tw_real) == sizeof(float) ? __builtin_sqrtf(static_cast<float>(x))
                                          : __builtin_sqrt(x);
}
TW_INLINE tw_real rsqrt(tw_real x) { return 1 / sqrt(x); }
TW_INLINE tw_real floor(tw_real x) {
  return sizeof(tw_real) == sizeof(float) ? __builtin_floorf(static_cast<float>(x))
                                          : __builtin_floor(x);
}
TW_INLINE tw_real ceil(tw_real x) {
  return sizeof(tw_real) == sizeof(float) ? __builtin_ceilf(static_cast<float>(x))
                                          : __builtin_ceil(x);
}

TW_INLINE tw_real fabs(tw_real x) {
  return sizeof(tw_real) == sizeof(float) ? __builtin_fabsf(static_cast<float>(x))
                                          : __builtin_fabs(x);
}
TW_INLINE float abs(float x) { return __builtin_fabsf(x); }
TW_INLINE double abs(double x) { return __builtin_fabs(x); }
TW_INLINE int abs(int x) { return x < 0 ? -x : x; }
TW_INLINE long long abs(long long x) { return x < 0 ? -x : x; }

// As in C's fmin and fmax, and CUDA's min and max: where one argument is NaN, the other. The second
// comparison is never true for integers and costs them nothing.
template <typename A, typename B>
TW_INLINE auto min(A a, B b) {
  return b < a || a != a ? b : a;
}
template <typename A, typename B>
TW_INLINE auto max(A a, B b) {
  return a < b || a != a ? b : a;
}
TW_INLINE tw_real fmin(tw_real a, tw_real b) { return min(a, b); }
TW_INLINE tw_real fmax(tw_real a, tw_real b) { return max(a, b); }

template <typename A, typename B, typename C>
TW_INLINE auto clamp(A x, B low, C high) {
  return min(max(x, low), high);
}
template <typename A, typename B>
TW_INLINE auto select(bool condition, A a, B b) {
  return condition ? a : b;
}

template <typename A>
TW_INLINE auto sign(A x) {
  using T = decltype(+x);
  const T value = +x;
  return value > 0 ? T{1} : value < 0 ? static_cast<T>(-1) : value;
}

// As Python's // and %: the quotient is rounded down, and the remainder has b's sign.
template <typename A, typename B>
TW_INLINE auto floor_div(A a, B b) {
  using T = decltype(+a + +b);
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  if constexpr (tw_is_floating<T>) {
    return tw_real_floor_div(x, y);
  } else {
    const T rest = x % y;
    return rest != 0 && (rest < 0) != (y < 0) ? x / y - 1 : x / y;
  }
}
template <typename A, typename B>
TW_INLINE auto floor_mod(A a, B b) {
  using T = decltype(+a + +b);
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  if constexpr (tw_is_floating<T>) {
    return tw_real_floor_mod(x, y);
  } else {
    const T rest = x % y;
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  }
}

TW_INLINE tw_real expf(tw_real x) { return exp(x); }
TW_INLINE tw_real exp2f(tw_real x) { return exp2(x); }
TW_INLINE tw_real logf(tw_real x) { return log(x); }
TW_INLINE tw_real log2f(tw_real x) { return log2(x); }
TW_INLINE tw_real tanhf(tw_real x) { return tanh(x); }
TW_INLINE tw_real erff(tw_real x) { return erf(x); }
TW_INLINE tw_real erfcf(tw_real x) { return erfc(x); }
TW_INLINE tw_real log1pf(tw_real x) { return log1p(x); }
TW_INLINE tw_real expm1f(tw_real x) { return expm1(x); }
TW_INLINE tw_real sqrtf(tw_real x) { return sqrt(x); }
TW_INLINE tw_real rsqrtf(tw_real x) { return rsqrt(x); }
TW_INLINE tw_real sinf(tw_real x) { return sin(x); }
TW_INLINE tw_real cosf(tw_real x) { return cos(x); }
TW_INLINE tw_real tanf(tw_real x) { return tan(x); }
TW_INLINE tw_real powf(tw_real x, tw_real y) { return pow(x, y); }
TW_INLINE tw_real fabsf(tw_real x) { return fabs(x); }
TW_INLINE tw_real fminf(tw_real a, tw_real b) { return fmin(a, b); }
TW_INLINE tw_real fmaxf(tw_real a, tw_real b) { return fmax(a, b); }
TW_INLINE tw_real floorf(tw_real x) { return floor(x); }
TW_INLINE tw_real ceilf(tw_real x) { return ceil(x); }

}  // namespace tw_snippet
