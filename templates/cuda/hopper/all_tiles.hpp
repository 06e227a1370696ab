#pragma once

#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/item_parts.hpp"

// The kv tiles that a q tile visits without a block mask: all of them, from the last to the first.

namespace tw_kernel {

class AllTiles : public TilesOfOneRow {
 public:
  // What is to be looked up for a q tile.
  struct Lists : PartStart {  // tiles up to the first to be visited
    template <typename Source>
    __forceinline__ Lists(const Source&, const QTile&, const Part& part, int kv_len)
        : kv_tiles((kv_len + kKvTile - 1) / kKvTile),
          masked_tiles(kHasMaskMod ? kv_tiles : static_cast<int>(kv_len % kKvTile != 0)) {
      if constexpr (kSplits) take(part);
    }

    __forceinline__ void take(const Part& part) {
      const int first = part.first(kv_tiles);
      set(kv_tiles - first);
      kv_tiles = part.count(kv_tiles);
      if (kHasMaskMod || first > 0) masked_tiles = kHasMaskMod ? kv_tiles : 0;
    }

    int kv_tiles;
    int masked_tiles;  // visited first: elements may be dropped or may not exist
  };

  __forceinline__ AllTiles(const Lists& lists, int) : remaining_(lists.or_else(lists.kv_tiles)) {}

  __forceinline__ KvTile next() { return KvTile(--remaining_ * kKvTile, kHasMaskMod); }

 private:
  int remaining_;
};

}  // namespace tw_kernel
