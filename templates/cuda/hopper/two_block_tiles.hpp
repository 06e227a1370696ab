#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/two_block_tile.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/ptx/thread.hpp"
#include "kernel/configuration.hpp"
#include "kernel/item_parts.hpp"

// The kv tiles of a q tile that covers rows of two blocks of the mask: the union of both rows' lists,
// from the last block to the first, each with what either row has of it. A warpgroup's rows lie in one
// block, so it passes by what that one does not list, and asks mask_mod only where that one is partial.

namespace tw_kernel {

class TwoBlockTiles {
 public:
  static_assert(!kSplits, "its tiles are not counted before they are visited");
  using Tile = TwoBlockTile;

  // Of row r the partial blocks are list 2 r, and the full ones list 2 r + 1.
  static constexpr int kLists = 4;

  // Where the lists of a q tile are. It lies in shared memory, and blocks that are taken leave it.
  struct Lists {
    const int* next[kLists];  // of the last block that was not taken
    int left[kLists];         // blocks that were not taken
    int ahead[kLists];        // the last of them; -1 where there is none
    int kv_tiles;             // at least so many are to be visited; 0: none
    static constexpr int masked_tiles = 0;  // every tile says for itself
  };

  // By a warp, a lane for each list: one after the other their reads would take too long; all at once
  // they would take more registers than there are.
  static constexpr bool kFoundByWarp = true;
  static __forceinline__ void find(const BlockMaskArguments& mask, const QTile& q_tile, const Part&, int kv_len,
                                   Lists& lists) {
    const unsigned list = thread_number<kThreads>() % 32;  // not kept between q tiles
    if (list < kLists) {
      const bool is_full = list % 2 != 0;
      const bool is_second = list / 2 != 0;
      const bool exists = !is_second || q_tile.first_row / kBlockQ + 1 < mask.q_blocks;
      const long long* const offsets =
          (is_full ? mask.full_row_offsets : mask.row_offsets) + q_tile.mask_row + list / 2;
      const long long begin = exists ? __ldg(offsets) : 0;
      const long long end = exists ? __ldg(offsets + 1) : 0;
      const int* const last = (is_full ? mask.full_indices : mask.indices) + end - 1;
      lists.next[list] = last;
      lists.left[list] = static_cast<int>(end - begin);
      lists.ahead[list] = end > begin ? __ldg(last) : -1;
    }
    __syncwarp();  // the first lane sees all lists
    if (list != 0) return;
    const int blocks = max(lists.left[0] + lists.left[1], lists.left[2] + lists.left[3]);
    const int last_block =
        max(max(lists.ahead[0], lists.ahead[1]), max(lists.ahead[2], lists.ahead[3]));
    lists.kv_tiles = count_tiles(blocks, last_block, kv_len);
  }

  __forceinline__ TwoBlockTiles(Lists& lists, int kv_len) : lists_(lists), kv_len_(kv_len) {
    for (int i = 0; i < kLists; ++i) ahead_[i] = lists.ahead[i];
    upcoming_ = find_upcoming();
  }

  // One tile ahead, because a tile says who lists the next one; the lists are read one block ahead of
  // that, so that no warp waits for them.
  __forceinline__ TwoBlockTile next() {
    const TwoBlockTile tile = upcoming_;
    upcoming_ = find_upcoming();
    return tile.followed_by(upcoming_);
  }

  // The tile itself knows: how many there are is not, as the lists are merged while they are visited.
  static __forceinline__ bool is_last(const Tile& tile, int, int) { return tile.is_last(); }

 private:
  __forceinline__ TwoBlockTile find_upcoming() {
    if (tiles_of_block_ == 0) {
      const int block = max(max(ahead_[0], ahead_[1]), max(ahead_[2], ahead_[3]));
      if (block < 0) return TwoBlockTile::none();
      const unsigned states = take(block);
      tiles_of_block_ = tiles_of(block, kv_len_) - 1;
      return {block * kBlockKv + tiles_of_block_ * kKvTile, states};
    }
    --tiles_of_block_;
    return {upcoming_.first() - kKvTile, upcoming_.states()};
  }

  __forceinline__ unsigned take(int block) {
    unsigned states = 0;
    for (int i = 0; i < kLists; ++i) {
      if (ahead_[i] != block) continue;
      states |= TwoBlockTile::states(i / 2, i % 2 == 0 ? TileState::partial : TileState::full);
      const bool has_more = --lists_.left[i] > 0;
      ahead_[i] = has_more ? __ldg(--lists_.next[i]) : -1;
    }
    return states;
  }

  Lists& lists_;
  int kv_len_;
  int ahead_[kLists];
  TwoBlockTile upcoming_;
  int tiles_of_block_ = 0;  // not yet visited
};

}  // namespace tw_kernel
