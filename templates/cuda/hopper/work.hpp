// Which q tiles a block of threads computes, and which kv tiles each of them visits.
//
// Needs: kKvTile, kBlockKv, kMasked, kHasMaskMod, KvTile (kv_tiles.hpp), find_place (place.hpp).

namespace tw_kernel {

// One q tile, as its producer announces it to the consumers.
struct Work {
  Place place;
  int kv_tiles;       // to visit
  int careful_tiles;  // of them, visited first: elements may be dropped or may not exist
};

// Numbers of the block's q tiles. Numbers rise with falling cost, so every other round is dealt out
// backwards: whoever got a longer tile gets a shorter one next.
class Schedule {
 public:
  __forceinline__ Schedule(const ForwardArguments& arguments, const SnippetArguments& call)
      : count_(arguments.q_tiles * call.batch * call.num_q_heads),
        number_(static_cast<int>(blockIdx.x)) {}

  __forceinline__ bool done() const { return number_ >= count_; }
  __forceinline__ int number() const { return number_; }
  __forceinline__ void advance() {
    const int grid = static_cast<int>(gridDim.x);
    const int round_begin = number_ / grid * grid;
    number_ = round_begin + grid + (grid - 1 - (number_ - round_begin));
  }

 private:
  int count_;
  int number_;
};

// Visits go from the last tile to the first, because it is the last that may reach behind kv_len.

class AllTiles {
 public:
  __forceinline__ AllTiles(const BlockMaskArguments&, const Place&, int kv_len)
      : left_((kv_len + kKvTile - 1) / kKvTile), ragged_(kv_len % kKvTile != 0) {}

  __forceinline__ int count() const { return left_; }
  __forceinline__ int careful() const { return kHasMaskMod ? left_ : ragged_; }
  __forceinline__ KvTile next() { return KvTile(--left_ * kKvTile, kHasMaskMod); }

 private:
  int left_;
  int ragged_;
};

// The blocks that the mask's row lists, partial ones first.
class ListedTiles {
 public:
  __forceinline__ ListedTiles(const BlockMaskArguments& mask, const Place& place, int kv_len)
      : kv_len_(kv_len) {
    const long long partial_end = __ldg(mask.row_offsets + place.mask_row + 1);
    const long long full_end = __ldg(mask.full_row_offsets + place.mask_row + 1);
    partial_left_ = static_cast<int>(partial_end - __ldg(mask.row_offsets + place.mask_row));
    full_left_ = static_cast<int>(full_end - __ldg(mask.full_row_offsets + place.mask_row));
    partial_ = mask.indices + partial_end - 1;
    full_ = mask.full_indices + full_end - 1;
    const int last_full = full_left_ > 0 ? __ldg(full_) : 0;
    ahead_ = partial_left_ > 0 ? __ldg(partial_) : last_full;
    const int partial_tiles = count_tiles(partial_left_, ahead_);
    count_ = partial_tiles + count_tiles(full_left_, last_full);
    const bool full_is_ragged = full_left_ > 0 && (last_full + 1) * kBlockKv > kv_len &&
                                kv_len % kKvTile != 0;
    careful_ = partial_tiles + static_cast<int>(full_is_ragged);
    tiles_of_block_ = 0;
  }

  __forceinline__ int count() const { return count_; }
  __forceinline__ int careful() const { return careful_; }

  // Reads one block ahead, so that nobody waits for the list.
  __forceinline__ KvTile next() {
    if (tiles_of_block_ == 0) {
      block_ = ahead_;
      is_partial_ = partial_left_ > 0;
      tiles_of_block_ = tiles_of(block_);
      if (is_partial_) {
        --partial_left_;
        --partial_;
      } else {
        --full_left_;
        --full_;
      }
      ahead_ = 0;
      if (partial_left_ > 0) {
        ahead_ = __ldg(partial_);
      } else if (full_left_ > 0) {
        ahead_ = __ldg(full_);
      }
    }
    --tiles_of_block_;
    return KvTile(block_ * kBlockKv + tiles_of_block_ * kKvTile, is_partial_);
  }

 private:
  static constexpr int kTilesOfBlock = kBlockKv / kKvTile;

  // Tiles of a block that begin in front of kv_len.
  __forceinline__ int tiles_of(int block) const {
    if (kTilesOfBlock == 1) return 1;
    return min(kTilesOfBlock, (kv_len_ - block * kBlockKv + kKvTile - 1) / kKvTile);
  }
  __forceinline__ int count_tiles(int blocks, int last_block) const {
    return blocks == 0 ? 0 : (blocks - 1) * kTilesOfBlock + tiles_of(last_block);
  }

  int kv_len_;
  const int* partial_;  // the next block of each list
  const int* full_;
  int partial_left_;
  int full_left_;
  int ahead_;  // the block that comes next
  int block_;
  int tiles_of_block_;  // not yet visited
  bool is_partial_;
  int count_;
  int careful_;
};

}  // namespace tw_kernel
