#pragma once

#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/ptx/warpgroup.hpp"
#include "kernel/configuration.hpp"

namespace tw_kernel {

// Lets one warpgroup after the other issue its products, so that the others' softmax runs
// meanwhile.
struct WarpgroupOrder {
  static __forceinline__ void start(int consumer) {
    if (kOrderedIssue && consumer == 0) arrive_named<2 * kWarpgroup>(1);
  }
  static __forceinline__ void wait_for_mine(int consumer) {
    if (kOrderedIssue) sync_named<2 * kWarpgroup>(1 + consumer);
  }
  static __forceinline__ void signal_next(int consumer) {
    if (kOrderedIssue) arrive_named<2 * kWarpgroup>(1 + (consumer + 1) % kConsumers);
  }
};

}  // namespace tw_kernel
