// The kv tiles that a q tile visits, one after the other: all of them, or those that the block mask's
// row lists, partial ones before full ones.
//
// Needs: kKvTile, kBlockKv, kMasked.

namespace tw_kernel {

struct KvTile {
  int first;     // kv row; kNone behind the last tile
  bool partial;  // mask_mod decides over its elements

  static constexpr int kNone = -1;
  __forceinline__ bool exists() const { return first >= 0; }
};

constexpr bool kMaskEveryTile = !kMasked && kHasMaskMod;

class AllTiles {
 public:
  __forceinline__ AllTiles(const BlockMaskArguments&, long long, int kv_len)
      : first_(0), kv_len_(kv_len) {}

  __forceinline__ KvTile next() {
    if (first_ >= kv_len_) return {KvTile::kNone, false};
    const KvTile tile = {first_, kMaskEveryTile};
    first_ += kKvTile;
    return tile;
  }

 private:
  int first_;
  int kv_len_;
};

class ListedTiles {
 public:
  __forceinline__ ListedTiles(const BlockMaskArguments& mask, long long row, int kv_len)
      : kv_len_(kv_len) {
    const long long begin = __ldg(mask.row_offsets + row);
    const long long full_begin = __ldg(mask.full_row_offsets + row);
    partial_ = static_cast<int>(__ldg(mask.row_offsets + row + 1) - begin);
    blocks_ = partial_ + static_cast<int>(__ldg(mask.full_row_offsets + row + 1) - full_begin);
    indices_ = mask.indices + begin;
    full_indices_ = mask.full_indices + full_begin - partial_;
    first_ = begin_of(0);
    next_first_ = begin_of(1);
  }

  __forceinline__ KvTile next() {
    if (block_ >= blocks_) return {KvTile::kNone, false};
    const KvTile tile = {first_ + within_, block_ < partial_};
    within_ += kKvTile;
    if (within_ == kBlockKv || first_ + within_ >= kv_len_) {
      within_ = 0;
      ++block_;
      first_ = next_first_;
      next_first_ = begin_of(block_ + 1);  // long before it is needed
    }
    return tile;
  }

 private:
  // First kv row of a listed block.
  __forceinline__ int begin_of(int block) const {
    if (block >= blocks_) return 0;
    return __ldg((block < partial_ ? indices_ : full_indices_) + block) * kBlockKv;
  }

  const int* indices_;       // indices_[i] is listed block i, i < partial_
  const int* full_indices_;  // full_indices_[i] is listed block i, i >= partial_
  int partial_;
  int blocks_;
  int kv_len_;
  int block_ = 0;
  int within_ = 0;  // rows of the block that have been visited
  int first_;
  int next_first_;
};

}  // namespace tw_kernel
