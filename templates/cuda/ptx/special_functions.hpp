#pragma once

#include "cuda/language.hpp"

// One instruction of the special function unit each. Errors as the PTX manual states them: ex2 2^-22
// relative, lg2 2^-22 absolute near 1, tanh 2^-11 relative, rcp 1 ulp, sin and cos 2^-20.5 absolute up to 2 pi,
// numbers below 2^-126 count as 0.

namespace tw_math {

TW_INLINE float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

TW_INLINE float log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

TW_INLINE float tanh(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// |x| <= 2 pi.
TW_INLINE float sin_of_reduced(float x) {
  float y;
  asm("sin.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// |x| <= 2 pi.
TW_INLINE float cos_of_reduced(float x) {
  float y;
  asm("cos.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 1 / x.
TW_INLINE float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace tw_math
