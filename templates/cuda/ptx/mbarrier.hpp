#pragma once

#include "cuda/language.hpp"
#include "kernel/configuration.hpp"

// Barriers in shared memory that count arrivals of threads and bytes of copies (sm_90).
//
// A phase of a barrier ends when as many threads arrived as init_barrier said and all bytes that
// were announced are there; then the next phase begins. Who waits names the parity of the phase that
// must have ended. A fresh barrier is in its phase 0, and the phase before that, of parity 1, counts
// as ended: the first wait for a free place in a ring passes at once.
//
// Arriving releases, waiting acquires: what a thread wrote to shared memory before it arrived is
// visible to who waited.

namespace tw_kernel {

TW_INLINE void init_barrier(unsigned barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes barriers known to the copy engine. __syncthreads() makes them known to threads.
TW_INLINE void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

TW_INLINE void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives where `arrives`, without a branch.
TW_INLINE void arrive_if(bool arrives, unsigned barrier) {
  asm volatile(
      "{\n"
      ".reg .pred arrives;\n"
      "setp.ne.b32 arrives, %1, 0;\n"
      "@arrives mbarrier.arrive.shared::cta.b64 _, [%0];\n"
      "}" ::"r"(barrier),
      "r"(static_cast<int>(arrives))
      : "memory");
}

// Announces bytes that copies will bring; who arrives in this phase comes later.
TW_INLINE void expect_bytes(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Arrives and announces bytes that copies will bring.
TW_INLINE void arrive_and_expect(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Whether the phase has ended; the hardware waits a little before it says no.
TW_INLINE bool try_wait(unsigned barrier, unsigned parity) {
  unsigned ended;
  asm volatile(
      "{\n"
      ".reg .pred ended;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
      "selp.u32 %0, 1, 0, ended;\n"
      "}"
      : "=r"(ended)
      : "r"(barrier), "r"(parity)
      : "memory");
  return ended != 0;
}

// `what` and `at` are for the report of a wait without end, where waits are bounded.
TW_INLINE void wait(unsigned barrier, unsigned parity, const char* what, int at) {
  // A poll takes about a microsecond at most, no wait of a working kernel a second.
  constexpr long long kMostPolls = 1 << 22;
  for (long long polls = 0; !try_wait(barrier, parity); ++polls) {
    if (!kBoundedWaits || polls < kMostPolls) continue;
    printf("tilewright: block %d thread %d waits for %s %d, phase parity %u\n",
           static_cast<int>(blockIdx.x), static_cast<int>(threadIdx.x), what, at, parity);
    __trap();
  }
}

}  // namespace tw_kernel
