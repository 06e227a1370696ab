#pragma once

#include "cuda/backward/walk.hpp"
#include "cuda/hopper/backward/planner_base.hpp"
#include "cuda/hopper/backward/rising_list.hpp"
#include "cuda/ptx/unknown_zero.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"

// The warp that finds out which tiles of rows a block's columns meet in a deterministic call: of each query head of
// their group in turn, rows in rising order, whichever list has them; and how many blocks add to dQ of a tile before
// this one.

namespace tw_kernel {

class Planner : PlannerBase {
 public:
  static constexpr bool kTakesWarp = false;  // one thread

  using PlannerBase::PlannerBase;

  __forceinline__ void run(const OwnColumns& own) {
    const int heads = heads_of_group();
#pragma unroll 1
    for (int h = own.h_kv * heads; h < (own.h_kv + 1) * heads; ++h) {
      if (kMasked) {
        put_listed(own, h);
      } else {
        put_all(own, h);
      }
    }
    put_end();
  }

 private:
  __forceinline__ void put_all(const OwnColumns& own, int h) {
    const int turn = columns_after(arguments_, own);
#pragma unroll 1
    for (int first = 0; first < call_.q_len; first += kKvTile) writer_.put({KvTile(first, kHasMaskMod), h, turn});
  }

  // The loop finds the lists again for each block of the mask, as it has no registers to keep them.
  __forceinline__ void put_listed(const OwnColumns& own, int h) {
    int of_partial = 0, of_full = 0;
#pragma unroll 1
    while (true) {
      const int row = as_unknown(list_row(arguments_.columns, own.b, h, own.first / kBlockKv));
      const int partial = RisingList::of_partial(arguments_.columns, row).at(of_partial);
      const int full = RisingList::of_full(arguments_.columns, row).at(of_full);
      const int block = min(partial, full);
      if (block == RisingList::kNone) break;
      const bool is_partial = partial < full;
      ++(is_partial ? of_partial : of_full);
      const int turn = turn_at(own, h, block), end = min((block + 1) * kBlockQ, call_.q_len);
#pragma unroll 1
      for (int first = block * kBlockQ; first < end; first += kKvTile) {
        writer_.put({KvTile(first, is_partial), h, turn});
      }
    }
  }

  // Blocks of threads with columns after these that meet the rows of a block of the mask.
  __forceinline__ int turn_at(const OwnColumns& own, int h, int block) const {
    constexpr int kOfBlock = kBlockKv / kQTile;  // blocks of threads
    int after = 0, last = -1;
#pragma unroll 1
    for (int i = 0; i < 2; ++i) {
      const int row = as_unknown(list_row(arguments_.rows, own.b, h, block));
      const RisingList list =
          i == 0 ? RisingList::of_partial(arguments_.rows, row) : RisingList::of_full(arguments_.rows, row);
      after += list.count_after(own.first / kBlockKv);
      if (kOfBlock > 1) last = max(last, list.last());
    }
    int turn = (after + 1) * kOfBlock - 1 - own.first / kQTile % kOfBlock;
    // The last block of columns may have fewer.
    const int blocks = (arguments_.kv_tiles + kOfBlock - 1) / kOfBlock;
    if (last == blocks - 1) turn -= blocks * kOfBlock - arguments_.kv_tiles;
    return turn;
  }
};

}  // namespace tw_kernel
