#pragma once

#include "cuda/language.hpp"

namespace tw_kernel {

// Adds to a float in global memory, in whatever order, where `adds`. No branch: it may lie between a
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

}  // namespace tw_kernel
