#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/decode/segment.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"

// A warp's kv tiles of the units of one item, in rising order: all columns. Where the spec has a mask_mod it
// is asked for each element.

namespace tw_kernel {

class AllUnitTiles {
 public:
  // team: the warp's number in the block
  __forceinline__ void begin(const ForwardArguments&, const SnippetArguments& call, const QTile& q_tile,
                             const Segment& segment, int team) {
    column_ = segment.first * kDecodeColumns + team * kKvTile;
    kv_len_ = q_tile.kv_len(call);
  }
  __forceinline__ KvTile tile() const {
    return column_ < kv_len_ ? KvTile(column_, kHasMaskMod) : KvTile::none();
  }
  __forceinline__ void advance() { column_ += kDecodeColumns; }

 private:
  int column_, kv_len_;
};

}  // namespace tw_kernel
