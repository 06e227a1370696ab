#pragma once

#include "abi/tile_map.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/ptx/thread.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"
#include "kernel/sequence.hpp"

// The kv tiles that a row of the tile map keeps, in rising order.

namespace tw_kernel {

using tilewright::abi::kTilesOfSpan;
using tilewright::abi::TileSpan;

// As ListedTiles: tiles go through a ring in shared memory that one warp fills 32 tiles at a time.
class MappedTiles {
 public:
  // ahead() may be called after the barrier that follows.
  __forceinline__ MappedTiles(const ForwardArguments& arguments, const QTile& q_tile,
                              const HeadPointers&, int kv_len)
      : row_(arguments.plan.map.spans +
             static_cast<long long>(q_tile.mask_row) * arguments.plan.map.spans_of_row),
        kv_len_(kv_len) {
    __shared__ KvTile ring[kRing];
    ring_ = ring;
    for (int i = threadIdx.x; i < kRing; i += kThreads) find(i);
  }

  // The i-th tile from the current one on; i is less than kHalf.
  __forceinline__ KvTile ahead(int i) const { return ring_[(current_ + i) % kRing]; }

  __forceinline__ void advance() { ++current_; }

  // To be called for every tile, after a barrier at which no thread needs the tiles before it any
  // more: their half of the ring takes the tiles that follow the other half.
  __forceinline__ void refill() {
    if (current_ % kHalf != 0 || current_ == 0) return;
    const int thread = static_cast<int>(thread_number<kThreads>());
    if (thread < kHalf) find(current_ + kHalf + thread);
  }

 private:
  static constexpr int kHalf = 32;
  static constexpr int kRing = 2 * kHalf;  // kept tile i is in entry i % kRing
  static constexpr int kTilesOfBlock = kBlockKv / kKvTile;

  // Writes the i-th kept tile into the ring. Only the row's last block may have fewer tiles than others.
  __forceinline__ void find(int i) const {
    const auto spans = static_cast<int>(tilewright::abi::spans_of_columns(kv_len_, kBlockKv));
    KvTile tile = KvTile::none();
    int before = i / kTilesOfBlock;  // kept blocks before the one that is looked for
#pragma unroll 1
    for (int at = 0; at < spans; ++at) {
      unsigned kept = __ldg(&row_[at].kept);
      const int count = __popc(kept);
      if (before >= count) {
        before -= count;
        continue;
      }
#pragma unroll 1
      for (; before > 0; --before) kept &= kept - 1;
      const int bit = __ffs(kept) - 1;
      const int first = (at * kTilesOfSpan + bit) * kBlockKv + i % kTilesOfBlock * kKvTile;
      if (first < kv_len_) tile = KvTile(first, (__ldg(&row_[at].partial) >> bit & 1u) != 0);
      break;
    }
    ring_[i % kRing] = tile;
  }

  const TileSpan* row_;  // [spans_of_row] of the plan
  int kv_len_;
  KvTile* ring_;
  int current_ = 0;
};

}  // namespace tw_kernel
