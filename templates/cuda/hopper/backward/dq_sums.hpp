#pragma once

#include "cuda/hopper/backward/layout.hpp"
#include "cuda/hopper/backward/pipeline.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/bulk_copy.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "cuda/ptx/warpgroup.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"
#include "kernel/hopper_backward_tile.hpp"
#include "kernel/hopper_backward_turns.hpp"

// How dQ of a tile leaves a block: a warpgroup stages its part in shared memory, and a separate warp adds
// it to the sums of all blocks, while the next tile is computed.

namespace tw_kernel {

constexpr int kDqThreads = kWarpgroup + 32;  // a warpgroup that computes, and the warp

// The warp.
class DqAdder {
 public:
  __forceinline__ DqAdder(const HopperBackwardArguments& arguments, const SnippetArguments& call,
                          const Shared& shared, int part)
      : arguments_(arguments), call_(call), shared_(shared), part_(part) {}

  __forceinline__ void run(const OwnColumns& own) const {
    DqTurns turns(arguments_, call_, own, part_);
    int plan = 0;
    PassingTile tile;
#pragma unroll 1
    do {
      arrive_named<kDqThreads>(kDqEmptyBarrier + part_);
      turns.pass_on();  // while the next one is computed
      sync_named<kDqThreads>(kDqFullBarrier + part_);
      tile = shared_.control->plan[plan];
      if (!tile.rows.exists()) break;  // the block has none
      plan = plan + 1 == kPlans ? 0 : plan + 1;
      if (lane() == 0 && dq_pairs(part_) > 0) {
        float* const sums = arguments_.dq_sums +
                            number_of_tile(arguments_, call_, own, tile.h, tile.rows.first()) * (kDqBytes / 4) +
                            part_ * (kDqPartBytes / 4);
        turns.wait_for(tile);
        add_floats(sums, shared_.dq(part_), dq_pairs(part_) * kDqPairBytes);
        commit_stores();
        wait_until_stores_read();
      }
      __syncwarp();  // the part has been read
      tile = shared_.control->plan[plan];  // the warpgroup had read it before it handed the part over
    } while (tile.rows.exists());
    turns.pass_on();
  }

 private:
  const HopperBackwardArguments& arguments_;
  const SnippetArguments& call_;
  const Shared shared_;
  int part_;
};

// A warpgroup's part.
TW_INLINE void stage_dq(const Shared& shared, int part, const float (&dq)[kRows][kDqColumns]) {
  const unsigned to = shared.dq(part) + consumer_thread() % kWarpgroup * 16;
  sync_named<kDqThreads>(kDqEmptyBarrier + part);
#pragma unroll
  for (int pair = 0; pair < kDqPartPairs; ++pair) {
    if (pair >= dq_pairs(part)) break;
    store_shared_16(to + pair * kWarpgroup * 16, __float_as_uint(dq[0][2 * pair]),
                    __float_as_uint(dq[0][2 * pair + 1]), __float_as_uint(dq[1][2 * pair]),
                    __float_as_uint(dq[1][2 * pair + 1]));
  }
}
// What it staged.
TW_INLINE void hand_over_dq(int part) {
  fence_for_copies();
  arrive_named<kDqThreads>(kDqFullBarrier + part);
}

// Where a block has no tile: the warp sees the end of the plan.
TW_INLINE void hand_over_nothing(int part) {
  sync_named<kDqThreads>(kDqEmptyBarrier + part);
  arrive_named<kDqThreads>(kDqFullBarrier + part);
}

}  // namespace tw_kernel
