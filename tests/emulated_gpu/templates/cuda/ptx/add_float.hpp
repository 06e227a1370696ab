#pragma once

#include "cuda/language.hpp"

// In place of templates/cuda/ptx/add_float.hpp.

namespace tw_kernel {

TW_INLINE void add_float(float* to, float x) {
  atomicAdd(to, x);
}

TW_INLINE void add_float_if(bool adds, float* to, float x) {
  if (adds) atomicAdd(to, x);
}

TW_INLINE void add_floats_4(float* to, const float4& x) {
  if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0)
    emulated_core->fail("four floats are added at no multiple of 16 bytes");
  atomicAdd(to, x.x);
  atomicAdd(to + 1, x.y);
  atomicAdd(to + 2, x.z);
  atomicAdd(to + 3, x.w);
}

}  // namespace tw_kernel
