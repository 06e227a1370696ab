#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/ptx/thread.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// The kv tiles that the block mask's row lists for a q tile, partial ones before full ones.

namespace tw_kernel {

// Listed tiles go through a ring in shared memory that one warp fills 32 tiles at a time: no thread
// waits for the list, and all that a thread keeps is a number.
class ListedTiles {
 public:
  // ahead() may be called after the barrier that follows.
  __forceinline__ ListedTiles(const ForwardArguments& arguments, const QTile& q_tile, const HeadPointers& head,
                              int kv_len)
      : mask_(arguments.mask), head_(head), kv_len_(kv_len) {
    __shared__ KvTile ring[kRing];
    ring_ = ring;
    for (int i = threadIdx.x; i < kRing; i += kThreads) list(i, q_tile.mask_row);
  }

  // The i-th tile from the current one on; i is less than kHalf.
  __forceinline__ KvTile ahead(int i) const { return ring_[(current_ + i) % kRing]; }

  __forceinline__ void advance() { ++current_; }

  // To be called for every tile, after a barrier at which no thread needs the tiles before it any
  // more: their half of the ring takes the tiles that follow the other half. Here, where no scores live,
  // it costs no registers; between two tiles it made ptxas spill.
  __forceinline__ void refill() {
    if (current_ % kHalf != 0 || current_ == 0) return;
    const int thread = static_cast<int>(thread_number<kThreads>());
    if (thread < kHalf) list(current_ + kHalf + thread, head_.q_tile.mask_row);
  }

 private:
  static constexpr int kHalf = 32;
  static constexpr int kRing = 2 * kHalf;  // listed tile i is in entry i % kRing
  static constexpr int kTilesOfBlock = kBlockKv / kKvTile;

  // Writes listed tile `i` into the ring.
  __forceinline__ void list(int i, int mask_row) {
    const List partial(mask_.row_offsets, mask_.indices, mask_row, kv_len_);
    const List full(mask_.full_row_offsets, mask_.full_indices, mask_row, kv_len_);
    KvTile tile = KvTile::none();
    if (i < partial.tiles) {
      tile = KvTile(partial.first_of(i), true);
    } else if (i < partial.tiles + full.tiles) {
      tile = KvTile(full.first_of(i - partial.tiles), false);
    }
    ring_[i % kRing] = tile;
  }

  // A row of one of the mask's lists. Only the last block of kv may have fewer tiles than others, and
  // it is the last of a list.
  struct List {
    __forceinline__ List(const long long* row_offsets, const int* indices, int mask_row, int kv_len)
        : blocks(indices + __ldg(row_offsets + mask_row)) {
      const int count =
          static_cast<int>(__ldg(row_offsets + mask_row + 1) - __ldg(row_offsets + mask_row));
      tiles = count * kTilesOfBlock;
      if (count == 0 || kTilesOfBlock == 1) return;
      const int rows = kv_len - __ldg(blocks + count - 1) * kBlockKv;
      if (rows < kBlockKv) tiles -= kTilesOfBlock - (rows + kKvTile - 1) / kKvTile;
    }

    __forceinline__ int first_of(int i) const {
      return __ldg(blocks + i / kTilesOfBlock) * kBlockKv + i % kTilesOfBlock * kKvTile;
    }

    const int* blocks;
    int tiles;
  };

  const BlockMaskArguments& mask_;
  const HeadPointers& head_;  // complete after the barrier that follows the construction
  int kv_len_;
  KvTile* ring_;
  int current_ = 0;
};

}  // namespace tw_kernel
