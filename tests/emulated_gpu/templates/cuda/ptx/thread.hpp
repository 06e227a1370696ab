#pragma once

#include "cuda/language.hpp"

// In place of templates/cuda/ptx/thread.hpp.

namespace tw_kernel {

template <int kThreads>
TW_INLINE unsigned thread_number() {
  return kThreads == 32 ? threadIdx.x % 32 : threadIdx.x;
}

TW_INLINE unsigned block_number() {
  return blockIdx.x;
}

}  // namespace tw_kernel
