#pragma once

#include "cuda/language.hpp"

// In place of templates/cuda/ptx/mbarrier.hpp.

namespace tw_kernel {

// The 64 bits of a barrier.
struct BarrierState {
  unsigned short arrivals;  // of a phase
  unsigned short missing;   // arrivals of the current phase
  int bytes : 31;           // announced, not yet brought
  unsigned phase : 1;
};
static_assert(sizeof(BarrierState) == 8);

TW_INLINE BarrierState& barrier_at(unsigned barrier) {
  if (barrier % 8 != 0) emulated_core->fail("a barrier's address is no multiple of 8");
  return *reinterpret_cast<BarrierState*>(emulated::at_shared(barrier));
}

TW_INLINE void end_phase_if_complete(BarrierState& state) {
  if (state.missing != 0 || state.bytes != 0) return;
  state.phase ^= 1;
  state.missing = state.arrivals;
}

TW_INLINE void init_barrier(unsigned barrier, unsigned arrivals) {
  const auto count = static_cast<unsigned short>(arrivals);
  barrier_at(barrier) = {count, count, 0, 0};
  emulated::thread().block->has_unpublished_barriers = true;
}

TW_INLINE void publish_barriers() {
  emulated::thread().block->has_unpublished_barriers = false;
}

TW_INLINE void arrive(unsigned barrier) {
  BarrierState& state = barrier_at(barrier);
  if (state.missing == 0) emulated_core->fail("more arrivals at a barrier than it waits for");
  --state.missing;
  end_phase_if_complete(state);
}

TW_INLINE void arrive_if(bool arrives, unsigned barrier) {
  if (arrives) arrive(barrier);
}

TW_INLINE void expect_bytes(unsigned barrier, unsigned bytes) {
  barrier_at(barrier).bytes += static_cast<int>(bytes);
}

TW_INLINE void arrive_and_expect(unsigned barrier, unsigned bytes) {
  BarrierState& state = barrier_at(barrier);
  state.bytes += static_cast<int>(bytes);
  arrive(barrier);
}

TW_INLINE void complete_bytes(unsigned barrier, unsigned bytes) {
  BarrierState& state = barrier_at(barrier);
  state.bytes -= static_cast<int>(bytes);
  end_phase_if_complete(state);
}

TW_INLINE void wait(unsigned barrier, unsigned parity, const char* what, int) {
  emulated::wait_until(what, [&] { return barrier_at(barrier).phase != parity; });
}

}  // namespace tw_kernel
