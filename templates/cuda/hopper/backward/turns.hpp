#pragma once

#include "abi/cuda_hopper_backward.hpp"
#include "cuda/hopper/backward/layout.hpp"
#include "cuda/hopper/backward/pipeline.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/bulk_copy.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/turn.hpp"
#include "cuda/ptx/warpgroup.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"
#include "kernel/hopper_backward_tile.hpp"

// In a deterministic call blocks take turns to add to the dQ of a tile. The block with the last columns adds first. A
// counter for each part of each tile's dQ counts the blocks that have added.

namespace tw_kernel {

constexpr bool kTakesTurns = true;
static_assert(kConsumers == tilewright::abi::cuda::kDqParts);

constexpr int kDqTurnThreads = kWarpgroup + 32;  // a warpgroup that computes, and its warp

// Of a part of dQ, for the warp that adds it or stands for a warpgroup that does.
class DqTurns {
 public:
  __forceinline__ DqTurns(const HopperBackwardArguments& arguments, const SnippetArguments& call,
                          const OwnColumns& own, int part)
      : arguments_(arguments), call_(call), own_(own), part_(part) {}

  // One lane.
  __forceinline__ void wait_for(const PassingTile& tile) {
    counter_ = arguments_.turns + number_of_tile(arguments_, call_, own_, tile.h, tile.rows.first()) * kConsumers +
               part_;
    turn_ = tile.turn;
    wait_for_turn(counter_, turn_);
  }

  // All lanes: what the one added is in memory, and the next block's turn.
  __forceinline__ void pass_on() {
    if (counter_ != nullptr) {
      wait_until_stores_written();
      give_turn(counter_, turn_ + 1);
    }
    counter_ = nullptr;
    __syncwarp();
  }

 private:
  const HopperBackwardArguments& arguments_;
  const SnippetArguments& call_;
  const OwnColumns& own_;
  const int part_;
  int* counter_ = nullptr;  // where a turn is to be passed on
  int turn_ = 0;
};

// The warp that stands for a warpgroup which adds its part from registers: with products in flight that one may meet
// others at barriers, and not loop.
TW_INLINE void keep_turns(const HopperBackwardArguments& arguments, const SnippetArguments& call, const Shared& shared,
                          const OwnColumns& own, int part) {
  if (key_share(part) == 0) return;
  const Control& control = *shared.control;
  DqTurns turns(arguments, call, own, part);
  TilePlace place;
#pragma unroll 1
  while (true) {
    wait(shared_address(&control.q_full[place.stage]), place.parity, "a plan, stage", place.stage);
    const PassingTile tile = control.plan[place.plan];
    if (!tile.rows.exists()) break;
    place.advance();
    if (lane() == 0) turns.wait_for(tile);
    __syncwarp();
    arrive_named<kDqTurnThreads>(kDqEmptyBarrier + part);
    sync_named<kDqTurnThreads>(kDqFullBarrier + part);
    turns.pass_on();
  }
}

// Of such a warpgroup.
TW_INLINE void begin_turn(int part) { sync_named<kDqTurnThreads>(kDqEmptyBarrier + part); }
TW_INLINE void end_turn(int part) { arrive_named<kDqTurnThreads>(kDqFullBarrier + part); }

}  // namespace tw_kernel
