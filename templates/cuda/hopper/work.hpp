// Which kv tiles a q tile visits.
//
// Needs: kKvTile, kBlockKv, kMasked, kHasMaskMod, KvTile (kv_tiles.hpp), find_place (place.hpp).

namespace tw_kernel {

// One q tile, as its producer announces it to the consumers.
struct Work {
  Place place;
  int kv_tiles;       // to visit, at least 1; 0: there is no q tile left
  int careful_tiles;  // of them, visited first: elements may be dropped or may not exist
};

// What a row of the mask has of a tile.
enum class TileState : unsigned { absent = 0, full = 1, partial = 3 };

// Visits go from the last tile to the first, because it is the last that may reach behind kv_len.

constexpr int kTilesOfKvBlock = kBlockKv / kKvTile;

// Tiles of a block that begin in front of kv_len.
TW_INLINE int tiles_of(int block, int kv_len) {
  if (kTilesOfKvBlock == 1) return 1;
  return min(kTilesOfKvBlock, (kv_len - block * kBlockKv + kKvTile - 1) / kKvTile);
}
TW_INLINE int count_tiles(int blocks, int last_block, int kv_len) {
  return blocks == 0 ? 0 : (blocks - 1) * kTilesOfKvBlock + tiles_of(last_block, kv_len);
}

// A tile as a row of the mask sees it, of which a q tile has only one (but see merged_tiles.hpp).
TW_INLINE KvTile as_kv_tile(KvTile tile, int) { return tile; }

// What walks over the tiles of one row of the mask, or without one, have in common.
struct TilesOfOneRow {
  using Tile = KvTile;

  static constexpr bool kFoundByWarp = false;
  template <typename Lists>
  static __forceinline__ void find(const BlockMaskArguments& mask, const Place& place, int kv_len,
                                   Lists& lists) {
    lists = {mask, place, kv_len};
  }

  // Whether tile i, which is at hand, is the last to be visited of kv_tiles.
  static __forceinline__ bool is_last(const Tile&, int i, int kv_tiles) { return i + 1 == kv_tiles; }
};

class AllTiles : public TilesOfOneRow {
 public:
  // What is to be looked up for a q tile.
  struct Lists {
    __forceinline__ Lists(const BlockMaskArguments&, const Place&, int kv_len)
        : kv_tiles((kv_len + kKvTile - 1) / kKvTile),
          careful_tiles(kHasMaskMod ? kv_tiles : static_cast<int>(kv_len % kKvTile != 0)) {}

    int kv_tiles;
    int careful_tiles;  // visited first: elements may be dropped or may not exist
  };

  __forceinline__ AllTiles(const Lists& lists, int) : left_(lists.kv_tiles) {}

  __forceinline__ KvTile next() { return KvTile(--left_ * kKvTile, kHasMaskMod); }

 private:
  int left_;
};

// The blocks that the mask's row lists, partial ones first.
class ListedTiles : public TilesOfOneRow {
 public:
  struct Lists {
    __forceinline__ Lists(const BlockMaskArguments& mask, const Place& place, int kv_len) {
      const long long partial_end = __ldg(mask.row_offsets + place.mask_row + 1);
      const long long full_end = __ldg(mask.full_row_offsets + place.mask_row + 1);
      partial_blocks = static_cast<int>(partial_end - __ldg(mask.row_offsets + place.mask_row));
      full_blocks = static_cast<int>(full_end - __ldg(mask.full_row_offsets + place.mask_row));
      last_partial = mask.indices + partial_end - 1;
      last_full = mask.full_indices + full_end - 1;
      const int full_block = full_blocks > 0 ? __ldg(last_full) : 0;
      first_block = partial_blocks > 0 ? __ldg(last_partial) : full_block;
      const int partial_tiles = count_tiles(partial_blocks, first_block, kv_len);
      const bool full_is_ragged = full_blocks > 0 && (full_block + 1) * kBlockKv > kv_len &&
                                  kv_len % kKvTile != 0;
      kv_tiles = partial_tiles + count_tiles(full_blocks, full_block, kv_len);
      careful_tiles = partial_tiles + static_cast<int>(full_is_ragged);
    }

    const int* last_partial;  // entry of the list
    const int* last_full;
    int partial_blocks;
    int full_blocks;
    int first_block;  // to be visited
    int kv_tiles;
    int careful_tiles;
  };

  __forceinline__ ListedTiles(const Lists& lists, int kv_len)
      : lists_(lists),
        kv_len_(kv_len),
        left_(lists.partial_blocks + lists.full_blocks),
        ahead_(lists.first_block),
        at_(lists.partial_blocks > 0 ? lists.last_partial : lists.last_full) {}

  // Reads one block ahead, so that nobody waits for the list.
  __forceinline__ KvTile next() {
    if (tiles_of_block_ == 0) {
      block_ = ahead_;
      is_partial_ = left_ > lists_.full_blocks;
      tiles_of_block_ = tiles_of(block_, kv_len_);
      --left_;
      at_ = is_partial_ && left_ == lists_.full_blocks ? lists_.last_full : at_ - 1;
      if (left_ > 0) ahead_ = __ldg(at_);
    }
    --tiles_of_block_;
    return KvTile(block_ * kBlockKv + tiles_of_block_ * kKvTile, is_partial_);
  }

 private:
  const Lists& lists_;
  int kv_len_;
  int left_;       // blocks to come
  int ahead_;      // the first of them
  const int* at_;  // its entry
  int block_;
  bool is_partial_;
  int tiles_of_block_ = 0;  // not yet visited
};

}  // namespace tw_kernel
