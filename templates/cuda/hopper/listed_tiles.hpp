#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/block_share.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/item_parts.hpp"

// The kv tiles of the blocks that the mask's row lists for a q tile.

namespace tw_kernel {

// The blocks that the mask's row lists, partial ones first.
class ListedTiles : public TilesOfOneRow {
 public:
  struct Lists {
    __forceinline__ Lists(const BlockMaskArguments& mask, const QTile& q_tile, const Part& part, int kv_len) {
      const long long partial_end = __ldg(mask.row_offsets + q_tile.mask_row + 1);
      const long long full_end = __ldg(mask.full_row_offsets + q_tile.mask_row + 1);
      const BlockShare share =
          part.share(static_cast<int>(partial_end - __ldg(mask.row_offsets + q_tile.mask_row)),
                     static_cast<int>(full_end - __ldg(mask.full_row_offsets + q_tile.mask_row)));
      partial_blocks = share.partial;
      full_blocks = share.full;
      last_partial = mask.indices + partial_end - 1 - share.first_partial;
      last_full = mask.full_indices + full_end - 1 - share.first_full;
      const int full_block = full_blocks > 0 ? __ldg(last_full) : 0;
      first_block = partial_blocks > 0 ? __ldg(last_partial) : full_block;
      const int partial_tiles = count_tiles(partial_blocks, first_block, kv_len);
      const bool full_is_ragged = full_blocks > 0 && (full_block + 1) * kBlockKv > kv_len &&
                                  kv_len % kKvTile != 0;
      kv_tiles = partial_tiles + count_tiles(full_blocks, full_block, kv_len);
      masked_tiles = partial_tiles + static_cast<int>(full_is_ragged);
    }

    const int* last_partial;  // entry of the list
    const int* last_full;
    int partial_blocks;
    int full_blocks;
    int first_block;  // to be visited
    int kv_tiles;
    int masked_tiles;
  };

  __forceinline__ ListedTiles(const Lists& lists, int kv_len)
      : lists_(lists),
        kv_len_(kv_len),
        remaining_(lists.partial_blocks + lists.full_blocks),
        ahead_(lists.first_block),
        at_(lists.partial_blocks > 0 ? lists.last_partial : lists.last_full) {}

  // Reads one block ahead, so that no warp waits for the list.
  __forceinline__ KvTile next() {
    if (tiles_of_block_ == 0) {
      block_ = ahead_;
      is_partial_ = remaining_ > lists_.full_blocks;
      tiles_of_block_ = tiles_of(block_, kv_len_);
      --remaining_;
      at_ = is_partial_ && remaining_ == lists_.full_blocks ? lists_.last_full : at_ - 1;
      if (remaining_ > 0) ahead_ = __ldg(at_);
    }
    --tiles_of_block_;
    return KvTile(block_ * kBlockKv + tiles_of_block_ * kKvTile, is_partial_);
  }

 private:
  const Lists& lists_;
  int kv_len_;
  int remaining_;       // blocks to come
  int ahead_;      // the first of them
  const int* at_;  // its entry
  int block_;
  bool is_partial_;
  int tiles_of_block_ = 0;  // not yet visited
};

}  // namespace tw_kernel
