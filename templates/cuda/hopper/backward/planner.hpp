#pragma once

#include "cuda/backward/walk.hpp"
#include "cuda/hopper/backward/pipeline.hpp"
#include "cuda/hopper/backward/own_columns.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"

// The warp that finds out which tiles of rows a block's columns meet: of each query head of their group in
// turn. The loader has too few registers for lists.

namespace tw_kernel {

class Planner {
 public:
  __forceinline__ Planner(const HopperBackwardArguments& arguments, const SnippetArguments& call,
                          const Shared& shared)
      : arguments_(arguments), call_(call), shared_(shared) {}

  // One thread.
  __forceinline__ void run(const OwnColumns& own) {
    const int heads = heads_of_group(call_);
#pragma unroll 1
    for (int h = own.h_kv * heads; h < (own.h_kv + 1) * heads; ++h) {
      const TileWalk<kBlockQ> walk(
          arguments_.columns, kMasked ? list_row(arguments_.columns, own.b, h, own.first / kBlockKv) : 0,
          call_.q_len);
      TileWalk<kBlockQ>::Cursor cursor;
#pragma unroll 1
      for (KvTile tile = walk.next(cursor); tile.exists(); tile = walk.next(cursor)) put({tile, h});
    }
    put({KvTile::none(), 0});
  }

 private:
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

  const HopperBackwardArguments& arguments_;
  const SnippetArguments& call_;
  const Shared shared_;
  int plan_ = 0;
  unsigned parity_ = 0;
  bool is_first_ = true;
};

}  // namespace tw_kernel
