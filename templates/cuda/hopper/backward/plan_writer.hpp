#pragma once

#include "cuda/hopper/backward/pipeline.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "kernel/hopper_backward_tile.hpp"

// Where the planner's thread writes which tile is next.

namespace tw_kernel {

class PlanWriter {
 public:
  __forceinline__ explicit PlanWriter(const Shared& shared) : shared_(shared) {}

  __forceinline__ void put(const PassingTile& tile) {
    Control& control = *shared_.control;
    if (!is_first_) {
      wait(shared_address(&control.plan_asked), parity_, "a question for a tile", 0);
      parity_ ^= 1;
    }
    is_first_ = false;
    control.plan[plan_] = tile;
    plan_ = plan_ + 1 == kPlans ? 0 : plan_ + 1;
    arrive(shared_address(&control.plan_full));
  }

 private:
  const Shared shared_;
  int plan_ = 0;
  unsigned parity_ = 0;
  bool is_first_ = true;
};

}  // namespace tw_kernel
