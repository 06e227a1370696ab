#pragma once

#include "cuda/float16.hpp"
#include "cuda/language.hpp"

// The instructions that convert elements of 16 bits and of TF32 (sm_80).

namespace tw_kernel {

TW_INLINE float to_float(Half x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}

// Round to nearest, ties to even; too great a number becomes infinite, NaN stays NaN.
TW_INLINE void from_float(float x, Half* out) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out->bits) : "f"(x));
}
TW_INLINE void from_float(float x, BFloat16* out) {
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out->bits) : "f"(x));
}

// Two 16-bit numbers in a register, `low` in the low half: the lower address, the lower column.
template <typename Element>
TW_INLINE unsigned pack(float low, float high);

template <>
unsigned pack<Half>(float low, float high) {
  unsigned packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

template <>
unsigned pack<BFloat16>(float low, float high) {
  unsigned packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// A float32 with 11 significant bits, as tensor cores see it. Round to nearest, ties away from zero.
TW_INLINE unsigned to_tf32(float x) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}

}  // namespace tw_kernel
