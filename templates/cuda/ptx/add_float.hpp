#pragma once

#include "cuda/language.hpp"

namespace tw_kernel {

// Adds to a float in global memory, in whatever order.
TW_INLINE void add_float(float* to, float x) {
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(to), "f"(x) : "memory");
}

// The same where `adds`. No branch: it may lie between a
// product's issue and its wait (products.hpp.jinja).
TW_INLINE void add_float_if(bool adds, float* to, float x) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %2, 0;\n"
      "@p red.relaxed.gpu.global.add.f32 [%0], %1;\n"
      "}" ::"l"(to),
      "f"(x), "r"(static_cast<int>(adds))
      : "memory");
}

// The same for four floats that follow each other, from a multiple of 16 bytes on (sm_90).
TW_INLINE void add_floats_4(float* to, const float4& x) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], { %1, %2, %3, %4};" ::"l"(to), "f"(x.x), "f"(x.y), "f"(x.z),
               "f"(x.w)
               : "memory");
}

}  // namespace tw_kernel
