#pragma once

#include "cuda/language.hpp"

namespace tw_kernel {

// 0, as a value whose making the compiler does not know.
TW_INLINE float unknown_zero() {
  float zero;
  asm volatile("mov.f32 %0, 0f00000000;" : "=f"(zero));
  return zero;
}

// x, as a value that the compiler does not know to be that: what follows from it is computed anew.
TW_INLINE int as_unknown(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

}  // namespace tw_kernel
