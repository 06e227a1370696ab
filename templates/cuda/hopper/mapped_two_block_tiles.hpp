#pragma once

#include "abi/tile_map.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/two_block_tile.hpp"
#include "cuda/hopper/work.hpp"
#include "kernel/configuration.hpp"
#include "kernel/item_parts.hpp"

// The kv tiles of a q tile that covers two rows of the tile map: the union of both rows' tiles, from the
// last to the first, each with what either row has of it (two_block_tiles.hpp says the same of lists).

namespace tw_kernel {

using tilewright::abi::kTilesOfSpan;
using tilewright::abi::TileMap;
using tilewright::abi::TileSpan;

class MappedTwoBlockTiles {
 public:
  static_assert(!kSplits, "its tiles are not counted before they are visited");
  using Tile = TwoBlockTile;

  // Where the rows of a q tile are. It lies in shared memory.
  struct Lists {
    const TileSpan* row;   // [spans] of the plan: the first row's
    int second;            // spans from there to the second row's; 0 where the q tile has no rows there
    int spans;
    TileSpan at_hand[2];   // of each row, whose blocks are visited
    int kv_tiles;
    static constexpr int masked_tiles = 0;  // every tile says for itself
  };

  static constexpr bool kFoundByWarp = false;
  static __forceinline__ void find(const TileMap& map, const QTile& q_tile, const Part&, int kv_len,
                                   Lists& lists) {
    const int rows = q_tile.end_of_rows - q_tile.first_row;
    const int second = q_tile.begin_in_block + rows > kBlockQ ? map.spans_of_row : 0;
    const auto spans = static_cast<int>(tilewright::abi::spans_of_columns(kv_len, kBlockKv));
    const TileSpan* const row =
        map.spans + static_cast<long long>(q_tile.mask_row) * map.spans_of_row;
    int blocks = 0, last_block = 0;
#pragma unroll 1
    for (int i = 0; i < spans; ++i) {
      // Without a second row this reads the first one again.
      const unsigned kept = __ldg(&row[i].kept) | __ldg(&row[second + i].kept);
      blocks += __popc(kept);
      if (kept != 0) last_block = i * kTilesOfSpan + last_bit(kept);
    }
    lists.row = row;
    lists.second = second;
    lists.spans = spans;
    lists.kv_tiles = count_tiles(blocks, last_block, kv_len);
  }

  __forceinline__ MappedTwoBlockTiles(Lists& lists, int kv_len)
      : lists_(lists), kv_len_(kv_len), span_(lists.spans) {
    upcoming_ = find_upcoming();
  }

  // One tile ahead, because a tile says who has something of the next one.
  __forceinline__ TwoBlockTile next() {
    const TwoBlockTile tile = upcoming_;
    upcoming_ = find_upcoming();
    return tile.followed_by(upcoming_);
  }

  static __forceinline__ bool is_last(const Tile& tile, int, int) { return tile.is_last(); }

 private:
  // Of a word that is not 0.
  static __forceinline__ int last_bit(unsigned word) { return 31 - __clz(static_cast<int>(word)); }

  __forceinline__ TwoBlockTile find_upcoming() {
    if (tiles_of_block_ > 0) {
      --tiles_of_block_;
      return {upcoming_.first() - kKvTile, upcoming_.states()};
    }
#pragma unroll 1
    while (left_ == 0) {
      if (span_ == 0) return TwoBlockTile::none();
      take_span(--span_);
    }
    const int bit = last_bit(left_);
    left_ ^= 1u << bit;
    const int block = span_ * kTilesOfSpan + bit;
    tiles_of_block_ = tiles_of(block, kv_len_) - 1;
    return {block * kBlockKv + tiles_of_block_ * kKvTile,
            TwoBlockTile::states(0, state(0, bit)) | TwoBlockTile::states(1, state(1, bit))};
  }

  __forceinline__ void take_span(int span) {
    const TileSpan* const first = lists_.row + span;
    const TileSpan* const second = first + lists_.second;
    lists_.at_hand[0] = {__ldg(&first->kept), __ldg(&first->partial)};
    lists_.at_hand[1] = {0, 0};
    if (lists_.second != 0) lists_.at_hand[1] = {__ldg(&second->kept), __ldg(&second->partial)};
    left_ = lists_.at_hand[0].kept | lists_.at_hand[1].kept;
  }

  __forceinline__ TileState state(int row, int bit) const {
    const unsigned kept = lists_.at_hand[row].kept >> bit & 1u;
    const unsigned partial = lists_.at_hand[row].partial >> bit & 1u;
    return static_cast<TileState>(kept | partial << 1);
  }
  static_assert(static_cast<unsigned>(TileState::full) == 1 &&
                    static_cast<unsigned>(TileState::partial) == 3,
                "a bit for what is kept, and one for what is also dropped");

  Lists& lists_;
  int kv_len_;
  int span_;           // whose blocks are visited
  unsigned left_ = 0;  // of them, those to come
  TwoBlockTile upcoming_;
  int tiles_of_block_ = 0;  // not yet visited
};

}  // namespace tw_kernel
