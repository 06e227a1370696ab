#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/cuda_tensor_maps.hpp"
#include "abi/pages.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "cuda/tile/panel.hpp"
#include "kernel/configuration.hpp"

// How a tile of K or V is brought whose rows lie in pages: boxes of rows of one page each, with all panels
// where the head's columns are whole panels. Boxes of pages that the pool has not lie outside of it, and are
// read as 0.

namespace tw_kernel {

using tilewright::abi::cuda::kRaggedRows;

// Each warp of the producer's warpgroup but the planner's brings its share of every tile, a lane a box: a warp
// issues a box in 60 to 100 cycles. What a box needs is known before there is a place for it, as every cycle
// between the two delays the products.
class Loader {
 public:
  static constexpr int kCount = 3;

  __forceinline__ explicit Loader(const ForwardArguments& arguments)
      : k_page_rows_(rows_to_next_page(arguments.k)), v_page_rows_(rows_to_next_page(arguments.v)) {}

  static __forceinline__ bool takes_part() { return threadIdx.x / 32 != kWarpOfPlanner; }
  static __forceinline__ int number() {
    const auto warp = static_cast<int>(threadIdx.x / 32);
    return warp - (warp > kWarpOfPlanner ? 1 : 0);
  }
  // Whether the thread arrives at barriers for its loader.
  static __forceinline__ bool speaks() { return threadIdx.x % 32 == 0; }
  // Whether it brings Q too and says which tiles come.
  static __forceinline__ bool leads() { return threadIdx.x == 0; }

  __forceinline__ int k_page_rows() const { return k_page_rows_; }
  __forceinline__ int v_page_rows() const { return v_page_rows_; }

 private:
  static constexpr int kWarpOfPlanner = 1;

  // The runtime chooses this kernel where that is a whole number.
  static __forceinline__ int rows_to_next_page(const TensorArgument& pool) {
    return static_cast<int>(static_cast<unsigned>(pool.batch_stride) /
                            static_cast<unsigned>(pool.row_stride));
  }

  int k_page_rows_;
  int v_page_rows_;
};
static_assert(kKvTile / 16 <= 32 * Loader::kCount, "a lane has one box at most, of 16 rows or more");

// The lane's box of a tile's rows from `first` on.
class KvBox {
 public:
  __forceinline__ KvBox(const QTile& q_tile, int page_rows, int kv_len, int first)
      : shift_(q_tile.pages.box_shift), row_(own_number() << shift_), rows_(kv_len - first - row_) {
    const tilewright::abi::SequencePages& pages = q_tile.pages;
    begin_ = kOutside;
    if (!exists() || rows_ <= 0) return;
    const int row = first + row_;
    const int index = tilewright::abi::quotient(row, pages.page_size);
    const int page = tilewright::abi::page_entry(pages, index);
    if (tilewright::abi::is_present(page, pages.pages)) {
      begin_ = page * page_rows + row - index * pages.page_size.value;
    }
  }

  // Brings it to shared memory; of K also the rows past the sequence's end.
  // full: completed by the copies of all loaders
  __forceinline__ void load_k(unsigned to, const TensorMaps& maps, unsigned full, int h, int) const {
    expect<kBroughtKPanels>(full);
    if (exists()) load<kBroughtKPanels, kKBoxPanels>(to, maps.k, full, h);
  }
  // Rows of V past the sequence's end are read as 0: their weights are 0, and 0 times NaN is NaN.
  __forceinline__ void load_v(unsigned to, const TensorMaps& maps, unsigned full, int h, int) const {
    expect<kBroughtVPanels>(full);
    if (!exists()) return;
    if (begin_ == kOutside || rows_ >= 1 << shift_) {
      load<kBroughtVPanels, kVBoxPanels>(to, maps.v, full, h);
    } else {
      load_end(to, maps.v_end, full, h);
    }
  }

 private:
  static constexpr int kOutside = -1024;  // more rows before the pool than a box has

  static __forceinline__ int own_number() {
    return static_cast<int>(threadIdx.x % 32) * Loader::kCount + Loader::number();
  }
  __forceinline__ bool exists() const { return row_ < kKvTile; }

  // Expects the bytes of the loader's boxes at the barrier.
  template <int kPanels>
  __forceinline__ void expect(unsigned full) const {
    // All lanes have seen the empty place. A loader without boxes brings nothing that others wait for: the place
    // may be used twice more, and its parity be that of before, while a lane still looks.
    __syncwarp();
    if (Loader::speaks()) {
      const int boxes = ((kKvTile >> shift_) - Loader::number() + Loader::kCount - 1) / Loader::kCount;
      arrive_and_expect(full, static_cast<unsigned>((boxes * kPanels * kPanelRowBytes) << shift_));
    }
    __syncwarp();
  }

  template <int kPanels, int kBoxPanels>
  __forceinline__ void load(unsigned to, const TensorMap& map, unsigned full, int h) const {
    const int group = begin_ / 8;
    const unsigned place = to + static_cast<unsigned>(row_ / 8 * group_distance(kBoxPanels));
    if constexpr (kBoxPanels > 1 || kPanels == 1) {
      load_box(place, map, full, 0, 0, 0, h, group);
    } else {
#pragma unroll
      for (int panel = 0; panel < kPanels; ++panel) {
        load_box(place + panel * kPanelBytes, map, full, panel * panel_columns(kKvBytes), 0, h, group);
      }
    }
  }

  // A box that reaches past the sequence's end, by 8 rows of a panel at a time.
  __forceinline__ void load_end(unsigned to, const TensorMap& map, unsigned full, int h) const {
    const int first = row_ / 8;
#pragma unroll 1
    for (int group = 0; group < 1 << shift_ >> 3; ++group) {
      const int left = max(rows_ - group * 8, 0);
      const int end = begin_ + rows_;
      const unsigned place = to + static_cast<unsigned>((first + group) * group_distance(kVBoxPanels));
#pragma unroll 1
      for (int panel = 0; panel < kBroughtVPanels; ++panel) {
        load_box(place + panel * panel_distance(kVBoxPanels), map, full, panel * panel_columns(kKvBytes),
                 kRaggedRows - left, h, end, kRaggedRows);
      }
    }
  }

  int shift_;
  int row_;    // its first, of the tile
  int rows_;   // that the sequence has from there on
  int begin_;  // its first row in the pool, counted as if all rows were of one page
};

TW_INLINE KvBox k_box(const Loader& loader, const QTile& q_tile, int kv_len, int first) {
  return {q_tile, loader.k_page_rows(), kv_len, first};
}
TW_INLINE KvBox v_box(const Loader& loader, const QTile& q_tile, int kv_len, int first) {
  return {q_tile, loader.v_page_rows(), kv_len, first};
}

}  // namespace tw_kernel
