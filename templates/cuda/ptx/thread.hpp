#pragma once

#include "cuda/language.hpp"

// What a thread knows of itself.

namespace tw_kernel {

// The thread's number among the kThreads that work together: in its block, or in its warp where that works
// alone. The compiler cannot know it to be the same each time. What is computed from it anew costs few
// instructions; kept over a loop it would cost registers, of which the accumulators leave hardly any.
template <int kThreads>
TW_INLINE unsigned thread_number() {
  unsigned number;
  if (kThreads == 32) {
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(number));
  } else {
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(number));
  }
  __builtin_assume(number < kThreads);
  return number;
}

// The block's number in its launch, likewise.
TW_INLINE unsigned block_number() {
  unsigned number;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(number));
  return number;
}

}  // namespace tw_kernel
