#pragma once

#include "cuda/language.hpp"

// The instruction that makes numbers of e4m3 (sm_89).

namespace tw_kernel {

// Four numbers in a register, the first in the lowest byte. Round to nearest, ties to even; too great a number
// becomes the greatest, NaN stays NaN.
TW_INLINE unsigned pack_e4m3(float a, float b, float c, float d) {
  unsigned packed;
  asm("{\n"
      ".reg .b16 low, high;\n"
      "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
      "mov.b32 %0, { low, high};\n"
      "}"
      : "=r"(packed)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return packed;
}

}  // namespace tw_kernel
