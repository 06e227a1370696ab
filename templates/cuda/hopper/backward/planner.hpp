#pragma once

#include "cuda/backward/walk.hpp"
#include "cuda/hopper/backward/planner_base.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"

// The warp that finds out which tiles of rows a block's columns meet: of each query head of their group in
// turn. The loader has too few registers for lists.

namespace tw_kernel {

class Planner : PlannerBase {
 public:
  static constexpr bool kTakesWarp = false;  // one thread

  using PlannerBase::PlannerBase;

  __forceinline__ void run(const OwnColumns& own) {
    const int heads = heads_of_group();
#pragma unroll 1
    for (int h = own.h_kv * heads; h < (own.h_kv + 1) * heads; ++h) {
      const TileWalk<kBlockQ> walk(
          arguments_.columns, kMasked ? list_row(arguments_.columns, own.b, h, own.first / kBlockKv) : 0,
          call_.q_len);
      TileWalk<kBlockQ>::Cursor cursor;
#pragma unroll 1
      for (KvTile tile = walk.next(cursor); tile.exists(); tile = walk.next(cursor)) writer_.put({tile, h});
    }
    put_end();
  }
};

}  // namespace tw_kernel
