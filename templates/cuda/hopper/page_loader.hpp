#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/pages.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "kernel/configuration.hpp"

// Who brings tiles of K and V whose rows lie in pages: boxes of rows of one page each, with all panels where the
// head's columns are whole panels. Boxes of pages that the pool has not lie outside of it, and are read as 0.

namespace tw_kernel {

// Each warp of the producer's warpgroup but the planner's brings its share of every tile, a lane a box: a warp
// issues a box in 60 to 100 cycles. What a box needs is known before there is a place for it, as every cycle
// between the two delays the products.
//
// Tiles that are widened have half the bytes, and what their loaders read from shared memory waits for the warps that
// widen. There a warp brings K and another one V (tensor_producer.hpp), or one warp both where two of the producer's
// warpgroup widen.
class Loader {
 public:
  static constexpr bool kSplitsTensors = kPreparesK && !kProducersWiden;
  static constexpr int kCount = kPreparesK ? 1 : 3;             // of a tile
  static constexpr int kLoaders = kSplitsTensors ? 2 : kCount;  // of a block

  __forceinline__ explicit Loader(const ForwardArguments& arguments)
      : k_page_rows_(rows_to_next_page(arguments.k)), v_page_rows_(rows_to_next_page(arguments.v)) {}

  static __forceinline__ bool takes_part() {
    if (kProducersWiden) return threadIdx.x / 32 == 0;
    return kSplitsTensors ? brings_k() || brings_v() : threadIdx.x / 32 != kWarpOfPlanner;
  }
  static __forceinline__ bool brings_k() { return !kSplitsTensors || threadIdx.x / 32 == 0; }
  static __forceinline__ bool brings_v() { return !kSplitsTensors || threadIdx.x / 32 == kWarpOfV; }
  // Of the loader, counted over those of a tile.
  static __forceinline__ int number() {
    if (kCount == 1) return 0;
    const auto warp = static_cast<int>(threadIdx.x / 32);
    return warp - (warp > kWarpOfPlanner ? 1 : 0);
  }
  // Of the lanes of all loaders of a tile: neighbours are of different warps.
  static __forceinline__ int number_of_lane() {
    return static_cast<int>(threadIdx.x % 32) * kCount + number();
  }
  // Whether the thread arrives at barriers for its loader.
  static __forceinline__ bool speaks() { return threadIdx.x % 32 == 0; }
  // Whether it brings Q too and says which tiles of K come.
  static __forceinline__ bool leads() { return threadIdx.x == 0; }

  __forceinline__ int k_page_rows() const { return k_page_rows_; }
  __forceinline__ int v_page_rows() const { return v_page_rows_; }

  // Of a tile in boxes of 2^shift rows: how many are this loader's.
  static __forceinline__ int boxes(int shift) {
    return ((kKvTile >> shift) - number() + kCount - 1) / kCount;
  }

  // Expects the loader's share of a tile's bytes at the barrier.
  static __forceinline__ void expect(unsigned full, int bytes) {
    // All lanes have seen the empty place. A loader without boxes brings nothing that others wait for: the place
    // may be used twice more, and its parity be that of before, while a lane still looks.
    __syncwarp();
    if (speaks()) arrive_and_expect(full, static_cast<unsigned>(bytes));
    __syncwarp();
  }

 private:
  static constexpr int kWarpOfPlanner = 1;
  static constexpr int kWarpOfV = 2;

  // The runtime chooses this kernel where that is a whole number.
  static __forceinline__ int rows_to_next_page(const TensorArgument& pool) {
    return static_cast<int>(static_cast<unsigned>(pool.batch_stride) /
                            static_cast<unsigned>(pool.row_stride));
  }

  int k_page_rows_;
  int v_page_rows_;
};
static_assert(kKvTile / 16 <= 32 * Loader::kCount, "a lane has one box at most, of 16 rows or more");

constexpr int kOutsidePool = -1024;  // more rows before the pool than a box has

// Where a sequence's row lies in a pool, counted as if all rows were of one page.
// page_rows: from a page to the next
TW_INLINE int row_in_pool(const tilewright::abi::SequencePages& pages, int page_rows, int row) {
  const int index = tilewright::abi::quotient(row, pages.page_size);
  const int page = tilewright::abi::page_entry(pages, index);
  if (!tilewright::abi::is_present(page, pages.pages)) return kOutsidePool;
  return page * page_rows + row - index * pages.page_size.value;
}

// Brings a box of whole groups of 8 rows.
// row: its first, of the tile. group, in_group: of the tensor's rows, its first group and the row where that begins
template <int kPanels, int kBoxPanels>
TW_INLINE void load_groups(unsigned to, const TensorMap& map, unsigned full, int h, int row, int group,
                           int in_group) {
  const unsigned place = to + static_cast<unsigned>(row / 8 * group_distance(kBoxPanels));
  if constexpr (kBoxPanels > 1 || kPanels == 1) {
    load_box(place, map, full, 0, in_group, 0, h, group);
  } else {
#pragma unroll
    for (int panel = 0; panel < kPanels; ++panel) {
      load_box(place + panel * kPanelBytes, map, full, panel * panel_columns(kKvBytes), in_group, h, group);
    }
  }
}

}  // namespace tw_kernel
