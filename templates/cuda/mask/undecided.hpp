#pragma once

#include "abi/cuda_mask.hpp"

// Where the interval interpretation meets a condition that it cannot decide.

namespace tw_proved {

// Of each thread: 0, or after an undecided condition pseudo-random numbers, which are odd.
static __shared__ unsigned tw_branches[tilewright::abi::cuda::kMostProvers];

static __noinline__ bool tw_undecided() {
  const unsigned next = (tw_branches[threadIdx.x] * 747796405u + 2891336453u) | 1u;
  tw_branches[threadIdx.x] = next;
  return next >> 31 != 0;
}

// NVRTC takes long for what it inlines and unrolls.
#define TW_SEPARATE __noinline__
#define TW_ROLLED _Pragma("unroll 1")

}  // namespace tw_proved
