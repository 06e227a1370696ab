#pragma once

#include "abi/tile_map.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/block_share.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/item_parts.hpp"

// The kv tiles of the blocks that a row of the tile map keeps.

namespace tw_kernel {

using tilewright::abi::kTilesOfSpan;
using tilewright::abi::TileMap;
using tilewright::abi::TileSpan;

// Partial blocks first, and of each kind the last one first.
class MappedTiles : public TilesOfOneRow {
 public:
  struct Lists : PartStart {  // blocks that are visited before
    __forceinline__ Lists(const TileMap& map, const QTile& q_tile, const Part& part, int kv_len)
        : row(map.spans + static_cast<long long>(q_tile.mask_row) * map.spans_of_row),
          spans(static_cast<int>(tilewright::abi::spans_of_columns(kv_len, kBlockKv))) {
      int partial_blocks = 0, full_blocks = 0, last_partial = 0, last_full = 0;
#pragma unroll 1
      for (int i = 0; i < spans; ++i) {
        const unsigned partial = __ldg(&row[i].partial);
        const unsigned full = __ldg(&row[i].kept) & ~partial;
        partial_blocks += __popc(partial);
        full_blocks += __popc(full);
        if (partial != 0) last_partial = i * kTilesOfSpan + last_bit(partial);
        if (full != 0) last_full = i * kTilesOfSpan + last_bit(full);
      }
      // Of each kind only the last block may be short.
      const BlockShare share = part.share(partial_blocks, full_blocks);
      if (share.first_partial > 0) last_partial = 0;
      if (share.first_full > 0) last_full = 0;
      const int partial_tiles = count_tiles(share.partial, last_partial, kv_len);
      const bool full_is_ragged =
          share.full > 0 && (last_full + 1) * kBlockKv > kv_len && kv_len % kKvTile != 0;
      kv_tiles = partial_tiles + count_tiles(share.full, last_full, kv_len);
      set(share.first_partial + share.first_full);
      masked_tiles = partial_tiles + static_cast<int>(full_is_ragged);
    }

    const TileSpan* row;  // [spans] of the plan
    int spans;
    int kv_tiles;
    int masked_tiles;  // visited first: elements may be dropped or may not exist
  };

  __forceinline__ MappedTiles(const Lists& lists, int kv_len)
      : lists_(lists), kv_len_(kv_len), span_(lists.spans) {
    if (kSplits) pass_by(lists.or_else(0));
  }

  __forceinline__ KvTile next() {
    if (tiles_of_block_ == 0) {
      block_ = next_block();
      tiles_of_block_ = tiles_of(block_, kv_len_);
    }
    --tiles_of_block_;
    return KvTile(block_ * kBlockKv + tiles_of_block_ * kKvTile, is_partial_);
  }

 private:
  // Of a word that is not 0.
  static __forceinline__ int last_bit(unsigned word) { return 31 - __clz(static_cast<int>(word)); }

  __forceinline__ void take_span() {
    if (span_ == 0) {
      is_partial_ = false;
      span_ = lists_.spans;
    }
    --span_;
    const unsigned partial = __ldg(&lists_.row[span_].partial);
    left_ = is_partial_ ? partial : __ldg(&lists_.row[span_].kept) & ~partial;
  }

  // blocks: of the row's, at most all.
  __forceinline__ void pass_by(int blocks) {
#pragma unroll 1
    while (blocks > 0) {
      take_span();
      const int here = __popc(left_);
#pragma unroll 1
      for (int i = min(blocks, here); i > 0; --i) left_ ^= 1u << last_bit(left_);
      blocks -= here;
    }
  }

  __forceinline__ int next_block() {
#pragma unroll 1
    while (left_ == 0) take_span();
    const int bit = last_bit(left_);
    left_ ^= 1u << bit;
    return span_ * kTilesOfSpan + bit;
  }

  const Lists& lists_;
  int kv_len_;
  int span_;           // whose blocks are visited
  unsigned left_ = 0;  // of them, those to come
  bool is_partial_ = true;
  int block_;
  int tiles_of_block_ = 0;  // not yet visited
};

}  // namespace tw_kernel
