#pragma once

#include "cuda/language.hpp"

// Counters in global memory that say whose turn it is among blocks of threads (sm_90).

namespace tw_kernel {

// Waits until the counter is `turn`. What was written before that, by the copy engine too, comes before what this
// thread, and threads that it meets at a barrier, write afterwards or ask the copy engine for.
TW_INLINE void wait_for_turn(const int* counter, int turn) {
  int now;
  do {
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
  } while (now != turn);
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

// After what this thread wrote, and threads that it met at a barrier. The copy engine's stores count as written when
// they were waited for.
TW_INLINE void give_turn(int* counter, int turn) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(counter), "r"(turn) : "memory");
}

}  // namespace tw_kernel
