#pragma once

#include "cuda/language.hpp"
#include "cuda/ptx/cache_policy.hpp"

// Copies from global to shared memory that run on while the thread computes (sm_80).
//
// A thread's copies since its last commit form a group. wait_for_groups<n> returns when all but
// this thread's n youngest groups have arrived, and what arrived is visible to this thread only:
// the other threads of the block see it after the next __syncthreads().

namespace tw_kernel {

// 16 bytes, both addresses multiples of 16. With `present` false 16 zero bytes are written and
// nothing is read.
TW_INLINE void copy_async_16(unsigned to, const void* from, bool present) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(present ? 16 : 0)
               : "memory");
}

// The first `bytes` of 16; zeros after them.
TW_INLINE void copy_async_up_to_16(unsigned to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(bytes)
               : "memory");
}

// The same, with the policy where `has_policy`. One that changes nothing takes time too.
TW_INLINE void copy_async_up_to_16(unsigned to, const void* from, int bytes, CachePolicy policy, bool has_policy) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %4, 0;\n"
      "@p cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2, %3;\n"
      "@!p cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n"
      "}" ::"r"(to), "l"(from), "r"(bytes), "l"(policy), "r"(static_cast<int>(has_policy))
      : "memory");
}

TW_INLINE void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int kPending>
TW_INLINE void wait_for_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace tw_kernel
