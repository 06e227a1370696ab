#pragma once

#include "abi/tile_map.hpp"
#include "cuda/hopper/backward/planner_base.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"

// The warp that finds out which tiles of a sequence's rows a block's columns meet: of each query head of their group
// in turn, by the plan's map. Each lane looks at a tile, and one of them writes which are next.

namespace tw_kernel {

static_assert(!kMasked || kBlockKv % kQTile == 0, "a block's columns are of one kv block");

class Planner : PlannerBase {
 public:
  static constexpr bool kTakesWarp = true;

  using PlannerBase::PlannerBase;

  __forceinline__ void run(const OwnColumns& own) {
    const int heads = heads_of_group();
#pragma unroll 1
    for (int h = own.h_kv * heads; h < (own.h_kv + 1) * heads; ++h) put_head(own, h);
    if (lane() == 0) put_end();
  }

 private:
  struct States {
    bool kept;
    bool partial;
  };

  __forceinline__ void put_head(const OwnColumns& own, int h) {
    const int q_len = own.shared->rows.q_len;
#pragma unroll 1
    for (int first = 0; first < q_len; first += 32 * kKvTile) {
      const States states = states_of(own, h, first + static_cast<int>(lane()) * kKvTile, q_len);
      unsigned kept = __ballot_sync(~0u, states.kept);
      const unsigned partial = __ballot_sync(~0u, states.partial);
      if (lane() == 0) {
#pragma unroll 1
        for (; kept != 0; kept &= kept - 1) {
          const int tile = __ffs(kept) - 1;
          writer_.put({KvTile(first + tile * kKvTile, (partial >> tile & 1u) != 0), h});
        }
      }
      __syncwarp();
    }
  }

  // A tile's rows may be of several rows of the map. mask_mod decides over a tile unless all of them keep it whole.
  __forceinline__ States states_of(const OwnColumns& own, int h, int first, int q_len) const {
    if (first >= q_len) return {false, false};
    if (!kMasked) return {true, false};
    const tilewright::abi::TileMap& map = arguments_.map;
    const int kv_block = own.first / kBlockKv, list = map.heads == 1 ? 0 : h;
    const int bit = kv_block % tilewright::abi::kTilesOfSpan;
    const tilewright::abi::TileSpan* span =
        map.spans +
        (static_cast<long long>(list) * map.rows + own.shared->tile_row + first / kBlockQ) * map.spans_of_row +
        kv_block / tilewright::abi::kTilesOfSpan;
    bool some = false, all = true;
    const int end = min(first + kKvTile, q_len);
#pragma unroll 1
    for (int row = first / kBlockQ * kBlockQ; row < end; row += kBlockQ, span += map.spans_of_row) {
      const bool kept = (__ldg(&span->kept) >> bit & 1u) != 0;
      some = some || kept;
      all = all && kept && (__ldg(&span->partial) >> bit & 1u) == 0;
    }
    return {some, !all};
  }
};

}  // namespace tw_kernel
