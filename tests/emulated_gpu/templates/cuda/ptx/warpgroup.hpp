#pragma once

#include "cuda/language.hpp"

// In place of templates/cuda/ptx/warpgroup.hpp.

namespace tw_kernel {

template <int kRegisters>
TW_INLINE void decrease_registers() {}
template <int kRegisters>
TW_INLINE void increase_registers() {}

template <int kThreadsOfBarrier>
TW_INLINE void sync_named(int barrier) {
  emulated::sync_at(emulated::thread().block->barriers[barrier], kThreadsOfBarrier,
                    "a named barrier");
}
template <int kThreadsOfBarrier>
TW_INLINE void arrive_named(int barrier) {
  emulated::arrive_at(emulated::thread().block->barriers[barrier], kThreadsOfBarrier);
}
TW_INLINE bool any_of_warpgroup(int barrier, bool holds) {
  emulated::NamedBarrier& named = emulated::thread().block->barriers[barrier];
  named.any = named.any || holds;
  emulated::sync_at(named, 128, "its warpgroup's answers");
  return named.any_before;
}

TW_INLINE void store_matrices(unsigned to, const unsigned (&matrices)[4]) {
  if (to % 16 != 0) emulated_core->fail("stmatrix: an address is no multiple of 16");
  const auto rows = emulated::exchange(to);
  const unsigned lane = threadIdx.x % 32;
  for (int i = 0; i < 4; ++i) {
    const unsigned word = rows.of[8 * i + lane / 4] + lane % 4 * 4;
    std::memcpy(emulated::at_shared(word), &matrices[i], 4);
    emulated::mark_unfenced(word);
  }
  __syncwarp();
}

}  // namespace tw_kernel
