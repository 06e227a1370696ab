#pragma once

#include "abi/cuda_backward.hpp"
#include "cuda/constants.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/cp_async_8.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// Facts of a tile's rows of q in shared memory, where tiles begin at any row: a thread copies those of one.

namespace tw_kernel {

using tilewright::abi::cuda::RowFacts;

static_assert(sizeof(RowFacts) == 8 && kKvTile <= kThreads, "a thread for each row");

TW_INLINE void copy_facts(unsigned to, const RowFacts* from) {
  if (threadIdx.x < kKvTile) copy_async_8(to + threadIdx.x * 8, from + threadIdx.x);
}

// Of facts that have arrived, whether nothing is kept in the row whose facts the thread copied.
TW_INLINE bool copied_dead_row(unsigned facts) {
  return threadIdx.x < kKvTile && load_shared(facts + threadIdx.x * 8) == kInfinity;
}

}  // namespace tw_kernel
