#pragma once

#include "abi/cuda_backward.hpp"
#include "cuda/constants.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/cp_async.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "kernel/configuration.hpp"

// Facts of a tile's rows of q in shared memory. Tiles begin at even rows, so a thread copies those of two.

namespace tw_kernel {

using tilewright::abi::cuda::RowFacts;

TW_INLINE void copy_facts(unsigned to, const RowFacts* from) {
  if (threadIdx.x >= kKvTile / 2) return;
  copy_async_16(to + threadIdx.x * 16, from + threadIdx.x * 2, true);
}

// Of facts that have arrived, whether nothing is kept in a row whose facts the thread copied.
TW_INLINE bool copied_dead_row(unsigned facts) {
  if (threadIdx.x >= kKvTile / 2) return false;
  const float4 pair = load_shared_4(facts + threadIdx.x * 16);
  return pair.x == kInfinity || pair.z == kInfinity;
}

}  // namespace tw_kernel
