#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/tile_map.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/decode/segment.hpp"
#include "cuda/decode/units.hpp"
#include "cuda/ptx/thread.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"

// A warp's kv tiles of the units of one item, in rising order: those that the plan's tile map keeps.

namespace tw_kernel {

// All lanes walk together.
class MappedUnitTiles {
 public:
  // team: the warp's number in the block
  __forceinline__ void begin(const ForwardArguments& arguments, const SnippetArguments& call,
                             const QTile& q_tile, const Segment& segment, int team) {
    map_ = &arguments.plan.map;
    heads_ = heads_of_list(*map_, call.num_q_heads, segment.head, arguments.plan.decode.lists);
    tile_row_ = q_tile.mask_row;
    kv_len_ = q_tile.kv_len(call);
    team_ = team;
    spans_ = static_cast<int>(tilewright::abi::spans_of_columns(kv_len_, kBlockKv));
    unit_ = segment.first % kUnitsOfTile;
    skip(segment.first / kUnitsOfTile);
  }

  __forceinline__ KvTile tile() const {
    const int in_tile = unit_ * kDecodeColumns + team_ * kKvTile;
    if (rest_.kept == 0 || in_tile >= kBlockKv) return KvTile::none();
    const int bit = __ffs(static_cast<int>(rest_.kept)) - 1;
    const int column = (span_ * kTilesOfSpan + bit) * kBlockKv + in_tile;
    return column < kv_len_ ? KvTile(column, (rest_.partial >> bit & 1u) != 0) : KvTile::none();
  }

  __forceinline__ void advance() {
    if (++unit_ < kUnitsOfTile) return;
    unit_ = 0;
    rest_.kept &= rest_.kept - 1;
#pragma unroll 1
    while (rest_.kept == 0 && span_ + 1 < spans_) rest_ = read_span(*map_, heads_, tile_row_, ++span_);
  }

 private:
  static constexpr int kTilesOfSpan = tilewright::abi::kTilesOfSpan;

  // Goes to the first kept tile that has so many before it: the lanes look at 32 spans at once.
  __forceinline__ void skip(int tiles) {
    const auto lane = static_cast<int>(thread_number<32>());
    span_ = 0;
    rest_ = {0, 0};
#pragma unroll 1
    for (int base = 0; base < spans_; base += 32) {
      TileSpan mine = {0, 0};
      if (base + lane < spans_) mine = read_span(*map_, heads_, tile_row_, base + lane);
      const int own = __popc(mine.kept);
      int up_to = own;
#pragma unroll
      for (int distance = 1; distance < 32; distance *= 2) {
        const int other = __shfl_up_sync(~0u, up_to, distance);
        if (lane >= distance) up_to += other;
      }
      const unsigned holds = __ballot_sync(~0u, up_to > tiles);
      if (holds != 0) {
        const int found = __ffs(static_cast<int>(holds)) - 1;
        int left = tiles - __shfl_sync(~0u, up_to - own, found);
        rest_.kept = __shfl_sync(~0u, mine.kept, found);
        rest_.partial = __shfl_sync(~0u, mine.partial, found);
        span_ = base + found;
#pragma unroll 1
        for (; left > 0; --left) rest_.kept &= rest_.kept - 1;
        return;
      }
      tiles -= __shfl_sync(~0u, up_to, 31);
    }
  }

  const TileMap* map_;
  HeadsOfList heads_;
  int tile_row_, kv_len_, team_, spans_;
  int unit_;       // of the tile
  int span_;
  TileSpan rest_;  // of the span: kept tiles from the current one on
};

}  // namespace tw_kernel
