#pragma once

#include "cuda/attention/q_tile.hpp"
#include "cuda/language.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"

// The tiles that a block's rows meet, in the order of the block mask's lists: partial ones before full
// ones; all of them without a mask.

namespace tw_kernel {

// A head's row of the lists.
TW_INLINE int list_row(const BlockMaskArguments& lists, int b, int h, int block) {
  const int mask_b = lists.batch == 1 ? 0 : b;
  const int mask_h = lists.heads == 1 ? 0 : h;
  return (mask_b * lists.heads + mask_h) * lists.q_blocks + block;
}

// kSide: rows of a block that an index of the lists stands for.
template <int kSide>
class TileWalk {
 public:
  using Tile = KvTile;
  struct Cursor {
    int i = 0;
  };

  TileWalk() = default;
  __forceinline__ TileWalk(const BlockMaskArguments& lists, int row, int length) : length_(length) {
    if (!kMasked) return;
    partial_ = List(lists.row_offsets, lists.indices, row, length);
    full_ = List(lists.full_row_offsets, lists.full_indices, row, length);
  }

  // The tiles one after another, and then none.
  __forceinline__ KvTile next(Cursor& cursor) const { return at(cursor.i++); }

 private:
  __forceinline__ KvTile at(int i) const {
    if (!kMasked) {
      return i * kKvTile < length_ ? KvTile(i * kKvTile, kHasMaskMod) : KvTile::none();
    }
    if (i < partial_.tiles) return KvTile(partial_.first_of(i), true);
    i -= partial_.tiles;
    return i < full_.tiles ? KvTile(full_.first_of(i), false) : KvTile::none();
  }

  static constexpr int kTilesOfBlock = kSide / kKvTile;

  // Only the last block may have fewer tiles than others, and it is the last of a list.
  struct List {
    List() = default;
    __forceinline__ List(const long long* row_offsets, const int* indices, int row, int length)
        : blocks(indices + __ldg(row_offsets + row)) {
      const int count = static_cast<int>(__ldg(row_offsets + row + 1) - __ldg(row_offsets + row));
      tiles = count * kTilesOfBlock;
      if (count == 0 || kTilesOfBlock == 1) return;
      const int rows = length - __ldg(blocks + count - 1) * kSide;
      if (rows < kSide) tiles -= kTilesOfBlock - (rows + kKvTile - 1) / kKvTile;
    }

    __forceinline__ int first_of(int i) const {
      return __ldg(blocks + i / kTilesOfBlock) * kSide + i % kTilesOfBlock * kKvTile;
    }

    const int* blocks;
    int tiles;
  };

  int length_;
  List partial_;
  List full_;
};

}  // namespace tw_kernel
