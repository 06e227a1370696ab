#pragma once

#include "cuda/language.hpp"

// In place of templates/cuda/ptx/turn.hpp. Blocks run on threads of the host, side by side, so who
// waits for another block's turn does not stand still; for how long blocks may wait while none
// gives a turn is limited.

namespace tw_kernel {

inline long turns_given = 0;  // of all launches

TW_INLINE void wait_for_turn(const int* counter, int turn) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kLongest = std::chrono::seconds(20);
  Clock::time_point since = Clock::now();
  long given = -1;
  while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) != turn) {
    const long now_given = __atomic_load_n(&turns_given, __ATOMIC_RELAXED);
    if (now_given != given) {
      given = now_given;
      since = Clock::now();
    }
    if (Clock::now() - since > kLongest)
      emulated_core->fail("it waits for a turn that no block gives");
    emulated_core->progress();
    emulated_core->pause("a turn");
  }
}

TW_INLINE void give_turn(int* counter, int turn) {
  __atomic_store_n(counter, turn, __ATOMIC_RELEASE);
  __atomic_fetch_add(&turns_given, 1, __ATOMIC_RELAXED);
}

}  // namespace tw_kernel
