#pragma once

#include "cuda/language.hpp"

// gcc's mathematical builtins, so that snippets and the files of math/ read the same for every target.

TW_INLINE float __builtin_sqrtf(float x) {
  return ::sqrtf(x);
}
TW_INLINE double __builtin_sqrt(double x) {
  return ::sqrt(x);
}
TW_INLINE float __builtin_floorf(float x) {
  return ::floorf(x);
}
TW_INLINE double __builtin_floor(double x) {
  return ::floor(x);
}
TW_INLINE float __builtin_ceilf(float x) {
  return ::ceilf(x);
}
TW_INLINE double __builtin_ceil(double x) {
  return ::ceil(x);
}
TW_INLINE float __builtin_fabsf(float x) {
  return ::fabsf(x);
}
TW_INLINE double __builtin_fabs(double x) {
  return ::fabs(x);
}
TW_INLINE float __builtin_truncf(float x) {
  return ::truncf(x);
}
TW_INLINE float __builtin_fmaf(float x, float y, float z) {
  return ::fmaf(x, y, z);
}
TW_INLINE float __builtin_fmodf(float x, float y) {
  return ::fmodf(x, y);
}
TW_INLINE double __builtin_fmod(double x, double y) {
  return ::fmod(x, y);
}
TW_INLINE float __builtin_powf(float x, float y) {
  return ::powf(x, y);
}
TW_INLINE double __builtin_pow(double x, double y) {
  return ::pow(x, y);
}

#define TW_BUILTIN(name)                         \
  TW_INLINE float __builtin_##name##f(float x) { \
    return ::name##f(x);                         \
  }                                              \
  TW_INLINE double __builtin_##name(double x) {  \
    return ::name(x);                            \
  }
TW_BUILTIN(exp)
TW_BUILTIN(exp2)
TW_BUILTIN(log)
TW_BUILTIN(log2)
TW_BUILTIN(tanh)
TW_BUILTIN(sin)
TW_BUILTIN(cos)
TW_BUILTIN(tan)
TW_BUILTIN(erf)
TW_BUILTIN(erfc)
TW_BUILTIN(log1p)
TW_BUILTIN(expm1)
#undef TW_BUILTIN
