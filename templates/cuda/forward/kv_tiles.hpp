// The kv tiles that a q tile visits, one after the other: all of them, or those that the block
// mask's row lists, partial ones before full ones. It is kept in few registers, as it lives beside
// the accumulators.
//
// Needs: kThreads, kKvTile, kBlockKv, kMasked, kHasMaskMod.

namespace tw_kernel {

class KvTile {
 public:
  KvTile() = default;
  __forceinline__ KvTile(int first, bool partial) : code_(first | static_cast<int>(partial)) {}
  static __forceinline__ KvTile none() { return {-1, false}; }

  __forceinline__ bool exists() const { return code_ >= 0; }
  // Its first kv row.
  __forceinline__ int first() const { return code_ & ~1; }
  // mask_mod decides over its elements.
  __forceinline__ bool partial() const { return (code_ & 1) != 0; }

 private:
  int code_;  // first, which is even, and partial in the lowest bit; negative: no tile
};

class AllTiles {
 public:
  __forceinline__ AllTiles(const BlockMaskArguments&, const Place&, const Task&, int kv_len)
      : kv_len_(kv_len) {}

  // Behind the barrier that follows the construction.
  __forceinline__ void start() {}

  __forceinline__ KvTile next() {
    if (first_ >= kv_len_) return KvTile::none();
    const KvTile tile(first_, kHasMaskMod);
    first_ += kKvTile;
    return tile;
  }

 private:
  int first_ = 0;
  int kv_len_;
};

// Listed blocks go through a ring in shared memory that one warp fills 32 blocks at a time: no
// thread waits for the list, and none keeps pointers into it.
struct ListedBlocks {
  static constexpr int kHalf = 32;
  KvTile first_tile[2 * kHalf];  // of listed block i in entry i % (2 * kHalf)
};

class ListedTiles {
 public:
  __forceinline__ ListedTiles(const BlockMaskArguments& mask, const Place& place, const Task& task,
                              int kv_len)
      : mask_(mask), task_(task), kv_len_(kv_len) {
    __shared__ ListedBlocks shared_blocks;
    blocks_ = &shared_blocks;
    for (int i = threadIdx.x; i < 2 * ListedBlocks::kHalf; i += kThreads) list(i, place.mask_row);
  }

  // Behind the barrier that follows the construction.
  __forceinline__ void start() { open_block(0); }

  // There must be a barrier between any 32 calls.
  __forceinline__ KvTile next() {
    const KvTile tile = next_;
    if (!tile.exists()) return tile;
    const int behind = tile.first() + kKvTile;
    if (behind % kBlockKv == 0 || behind >= kv_len_) {
      open_block(block_ + 1);
    } else {
      next_ = KvTile(behind, tile.partial());
    }
    return tile;
  }

 private:
  __forceinline__ void open_block(int block) {
    block_ = block;
    next_ = blocks_->first_tile[block % (2 * ListedBlocks::kHalf)];
    // The blocks before are done with; their half of the ring takes those behind the other half.
    if (block > 0 && block % ListedBlocks::kHalf == 0 && threadIdx.x < ListedBlocks::kHalf) {
      list(block + ListedBlocks::kHalf + static_cast<int>(threadIdx.x), task_.place.mask_row);
    }
  }

  // Writes listed block `i` into the ring.
  __forceinline__ void list(int i, int mask_row) {
    const long long begin = __ldg(mask_.row_offsets + mask_row);
    const int partial = static_cast<int>(__ldg(mask_.row_offsets + mask_row + 1) - begin);
    const long long full_begin = __ldg(mask_.full_row_offsets + mask_row);
    const int full = static_cast<int>(__ldg(mask_.full_row_offsets + mask_row + 1) - full_begin);
    KvTile tile = KvTile::none();
    if (i < partial) {
      tile = KvTile(__ldg(mask_.indices + begin + i) * kBlockKv, true);
    } else if (i < partial + full) {
      tile = KvTile(__ldg(mask_.full_indices + full_begin + i - partial) * kBlockKv, false);
    }
    blocks_->first_tile[i % (2 * ListedBlocks::kHalf)] = tile;
  }

  const BlockMaskArguments& mask_;
  const Task& task_;  // complete from start() on
  int kv_len_;
  ListedBlocks* blocks_;
  int block_;  // the listed block of next_
  KvTile next_;
};

}  // namespace tw_kernel
