#pragma once

#include "cuda/language.hpp"

// Copies of contiguous bytes between global and shared memory by the copy engine (sm_90). Addresses and
// sizes are multiples of 16 bytes.

namespace tw_kernel {

// Brings bytes and counts them at the barrier.
TW_INLINE void load_bytes(unsigned to, const void* from, unsigned bytes, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

// to[i] += the floats in shared memory, each addition atomic. It is a store that commit_stores() begins and
// wait_until_stores_read() waits for (tensor_copy.hpp).
TW_INLINE void add_floats(float* to, unsigned from, unsigned bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
               "r"(from), "r"(bytes)
               : "memory");
}

// This thread's stores are in global memory.
TW_INLINE void wait_until_stores_written() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

}  // namespace tw_kernel
