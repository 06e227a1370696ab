#pragma once

#include "cuda/language.hpp"

// Counters in global memory by which blocks of threads of one launch agree (sm_70).

namespace tw_kernel {

// Adds to a counter, and returns what it was. What the thread, and threads that met it at a barrier, wrote
// before is visible to every thread that meets, after a barrier, one that adds later.
TW_INLINE unsigned add_and_synchronise(unsigned* counter, unsigned x) {
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(counter), "r"(x)
               : "memory");
  return before;
}

}  // namespace tw_kernel
