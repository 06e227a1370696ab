#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/decode/segment.hpp"
#include "cuda/decode/units.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"

// A warp's kv tiles of the units of one item: those that its row of the block mask lists, partial ones before
// full ones.

namespace tw_kernel {

class ListedUnitTiles {
 public:
  // team: the warp's number in the block
  __forceinline__ void begin(const ForwardArguments& arguments, const SnippetArguments& call,
                             const QTile& q_tile, const Segment& segment, int team) {
    const BlockMaskArguments& mask = arguments.mask;
    const long long partial = __ldg(mask.row_offsets + q_tile.mask_row);
    const long long full = __ldg(mask.full_row_offsets + q_tile.mask_row);
    partial_ = mask.indices + partial;
    full_ = mask.full_indices + full;
    partials_ = static_cast<int>(__ldg(mask.row_offsets + q_tile.mask_row + 1) - partial);
    tiles_ = partials_ + static_cast<int>(__ldg(mask.full_row_offsets + q_tile.mask_row + 1) - full);
    kv_len_ = q_tile.kv_len(call);
    in_tile_ = team * kKvTile;
    unit_ = segment.first % kUnitsOfTile;
    find(segment.first / kUnitsOfTile);
  }

  __forceinline__ KvTile tile() const {
    const int in_tile = unit_ * kDecodeColumns + in_tile_;
    const int column = block_ * kBlockKv + in_tile;
    if (tile_ >= tiles_ || in_tile >= kBlockKv || column >= kv_len_) return KvTile::none();
    return KvTile(column, tile_ < partials_);
  }

  __forceinline__ void advance() {
    if (++unit_ < kUnitsOfTile) return;
    unit_ = 0;
    find(tile_ + 1);
  }

 private:
  __forceinline__ void find(int tile) {
    tile_ = tile;
    block_ = 0;
    if (tile < tiles_) block_ = __ldg(tile < partials_ ? partial_ + tile : full_ + (tile - partials_));
  }

  const int* partial_;  // of the row, kv blocks
  const int* full_;
  int partials_;
  int tiles_;    // of both lists
  int kv_len_;
  int in_tile_;  // column of a unit that the warp begins with
  int unit_;     // of the tile
  int tile_;     // of those listed
  int block_;    // the tile's kv block
};

}  // namespace tw_kernel
