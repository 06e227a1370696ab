#pragma once

#include "cuda/language.hpp"

// In place of templates/cuda/ptx/add_float.hpp.

namespace tw_kernel {

TW_INLINE void add_float_if(bool adds, float* to, float x) {
  if (adds) atomicAdd(to, x);
}

}  // namespace tw_kernel
