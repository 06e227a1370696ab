#pragma once

#include "cuda/attention/q_tile.hpp"
#include "cuda/language.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/item_parts.hpp"

// What a q tile is to a block of threads, and what the walks over its kv tiles have in common.

namespace tw_kernel {

// One q tile, or a part of one, as its producer announces it to the consumers.
struct WorkItem : Part {
  QTile q_tile;
  int kv_tiles;       // to visit, at least 1; 0: there is no q tile left
  int masked_tiles;  // of them, visited first: elements may be dropped or may not exist
};

// What a row of the mask has of a tile.
enum class TileState : unsigned { absent = 0, full = 1, partial = 3 };

// Visits go from the last tile to the first, because only the last may reach past kv_len.

constexpr int kTilesOfKvBlock = kBlockKv / kKvTile;

// Tiles of a block that begin before kv_len.
TW_INLINE int tiles_of(int block, int kv_len) {
  if (kTilesOfKvBlock == 1) return 1;
  return min(kTilesOfKvBlock, (kv_len - block * kBlockKv + kKvTile - 1) / kKvTile);
}
TW_INLINE int count_tiles(int blocks, int last_block, int kv_len) {
  return blocks == 0 ? 0 : (blocks - 1) * kTilesOfKvBlock + tiles_of(last_block, kv_len);
}

// What walks over the tiles of one row of the mask, or without one, have in common.
struct TilesOfOneRow {
  using Tile = KvTile;

  static constexpr bool kFoundByWarp = false;
  // source: a block mask's lists or a tile map.
  template <typename Source, typename Lists>
  static __forceinline__ void find(const Source& source, const QTile& q_tile, const Part& part,
                                   int kv_len, Lists& lists) {
    lists = {source, q_tile, part, kv_len};
  }

  // Whether tile i, which is at hand, is the last to be visited of kv_tiles.
  static __forceinline__ bool is_last(const Tile&, int i, int kv_tiles) { return i + 1 == kv_tiles; }
};

}  // namespace tw_kernel
