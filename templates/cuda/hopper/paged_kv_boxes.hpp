#pragma once

#include "abi/cuda_tensor_maps.hpp"
#include "abi/pages.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/page_loader.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "kernel/configuration.hpp"

// How a tile of K or V is brought whose rows lie in pages.

namespace tw_kernel {

using tilewright::abi::SequencePages;
using tilewright::abi::cuda::kRaggedRows;

// The lane's box of a tile's rows from `first` on.
class KvBox {
 public:
  __forceinline__ KvBox(const SequencePages& pages, int page_rows, int kv_len, int first)
      : shift_(pages.box_shift),
        row_(Loader::number_of_lane() << shift_),
        rows_(kv_len - first - row_),
        begin_(exists() && rows_ > 0 ? row_in_pool(pages, page_rows, first + row_) : kOutsidePool) {}

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
    if (begin_ == kOutsidePool || rows_ >= 1 << shift_) {
      load<kBroughtVPanels, kVBoxPanels>(to, maps.v, full, h);
    } else {
      load_end(to, maps.v_end, full, h);
    }
  }

 private:
  __forceinline__ bool exists() const { return row_ < kKvTile; }

  template <int kPanels>
  __forceinline__ void expect(unsigned full) const {
    Loader::expect(full, (Loader::boxes(shift_) * kPanels * kPanelRowBytes) << shift_);
  }

  template <int kPanels, int kBoxPanels>
  __forceinline__ void load(unsigned to, const TensorMap& map, unsigned full, int h) const {
    load_groups<kPanels, kBoxPanels>(to, map, full, h, row_, begin_ / 8, 0);
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
  return {q_tile.pages, loader.k_page_rows(), kv_len, first};
}
TW_INLINE KvBox v_box(const Loader& loader, const QTile& q_tile, int kv_len, int first) {
  return {q_tile.pages, loader.v_page_rows(), kv_len, first};
}

}  // namespace tw_kernel
