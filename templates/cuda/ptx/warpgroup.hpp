#pragma once

#include "cuda/language.hpp"

// What 128 threads that work together need: registers, named barriers, stores of fragments
// (sm_90a).

namespace tw_kernel {

// Hands registers over between warpgroups. All of a block's together must not exceed what it was
// launched with, else the increase waits for ever; multiples of 8 from 24 to 256.
template <int kRegisters>
TW_INLINE void decrease_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
TW_INLINE void increase_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// Named barriers of the block; 0 is __syncthreads(). All lanes of a warp come together.
template <int kThreadsOfBarrier>
TW_INLINE void sync_named(int barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(kThreadsOfBarrier) : "memory");
}
template <int kThreadsOfBarrier>
TW_INLINE void arrive_named(int barrier) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(kThreadsOfBarrier) : "memory");
}
// Whether it holds for any of 128 threads, which all come to the barrier.
TW_INLINE bool any_of_warpgroup(int barrier, bool holds) {
  unsigned any;
  asm volatile(
      "{\n"
      ".reg .pred holds, any;\n"
      "setp.ne.u32 holds, %2, 0;\n"
      "bar.red.or.pred any, %1, 128, holds;\n"
      "selp.u32 %0, 1, 0, any;\n"
      "}"
      : "=r"(any)
      : "r"(barrier), "r"(static_cast<unsigned>(holds))
      : "memory");
  // The vote tells ptxas that lanes agree: products after a branch that they might not take together
  // are serialised (C7520).
  return __any_sync(~0u, any != 0);
}

// Four 8 x 8 matrices of 16-bit elements to shared memory; lane l gives the address of row l % 8 of
// matrix l / 8. Register i holds matrix i: row l / 4, columns 2 (l % 4) and the next.
TW_INLINE void store_matrices(unsigned to, const unsigned (&matrices)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], { %1, %2, %3, %4};" ::"r"(to),
               "r"(matrices[0]), "r"(matrices[1]), "r"(matrices[2]), "r"(matrices[3])
               : "memory");
}

}  // namespace tw_kernel
