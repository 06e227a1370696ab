#pragma once

#include "abi/cuda_tensor_maps.hpp"
#include "abi/pages.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/page_loader.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "kernel/configuration.hpp"

// How a tile of K or V is brought whose rows lie in pages and, after the context, among the step's new rows. Where
// pages hold all of them, it comes as without new rows; where new rows are all of them, as one box. Other tiles come
// by 8 rows of a panel at a time, and the 8 rows that are of both one by one: a box may begin at any row of a tile, but
// writes all rows that it has.

namespace tw_kernel {

using tilewright::abi::cuda::kRaggedRows;
using tilewright::abi::cuda::NewRowsMaps;

// What the lane brings of a tile's rows from `first` on.
class KvBox {
 public:
  __forceinline__ KvBox(const QTile& q_tile, int page_rows, int kv_len, int first) : begin_(kOutsidePool) {
    // From the tile's first row on: rows that pages hold, and rows that exist.
    const int in_pages = tilewright::abi::context_of(q_tile.rows.q_len, kv_len) - first;
    const int all = kv_len - first;
    const int in_new = q_tile.rows.q_begin + q_tile.rows.q_len - all;  // where the tile's first row is or would be
    if (in_pages >= kKvTile) {
      what_ = kOfPages;
      row_ = Loader::number_of_lane() << q_tile.pages.box_shift;
    } else if (in_pages <= 0 && all >= kKvTile) {
      what_ = kNewTile;
      row_ = Loader::leads() ? 0 : kKvTile;
    } else {
      take_piece(in_pages);
    }
    if (row_ >= kKvTile) return;
    if (row_ < in_pages) {
      begin_ = row_in_pool(q_tile.pages, page_rows, first + row_);
      if (what_ >= 0 && begin_ != kOutsidePool) what_ += kRowsOfGroup;
    } else {
      begin_ = in_new + row_;
      if (what_ >= 0) what_ += kOfNew + min(max(all - row_, 0), kRowsOfGroup);
    }
  }

  // Brings it to shared memory; in pieces, rows after the sequence's end are read as 0: their weights are 0, and 0
  // times NaN is none.
  // full: completed by the copies of all loaders
  __forceinline__ void load_k(unsigned to, const TensorMaps& maps, unsigned full, int h, int) const {
    load<kBroughtKPanels, kKBoxPanels>(to, maps.k, maps.more_of_k, full, h);
  }
  __forceinline__ void load_v(unsigned to, const TensorMaps& maps, unsigned full, int h, int) const {
    load<kBroughtVPanels, kVBoxPanels>(to, maps.v, maps.more_of_v, full, h);
  }

 private:
  static constexpr int kRowsOfGroup = 8;
  static constexpr int kGroups = kKvTile / kRowsOfGroup;
  static_assert(kGroups + kRowsOfGroup <= 32 * Loader::kCount, "a lane has one piece at most");

  // A box of pages, the tile, or a piece: how many of its rows exist, 8 at most, and its place in NewRowsMaps::pieces.
  static constexpr int kOfPages = -1, kNewTile = -2;
  static constexpr int kPlaceOfPiece = 16, kRow = kPlaceOfPiece, kOfNew = 2 * kPlaceOfPiece;

  // First come the groups; the lanes after them take the rows of the group that is of both.
  __forceinline__ void take_piece(int in_pages) {
    const int number = Loader::number_of_lane();
    const int mixed = in_pages > 0 && in_pages % kRowsOfGroup != 0 ? in_pages / kRowsOfGroup : kGroups;
    const int row = number - kGroups;
    if (row < 0) {
      what_ = 0;
      row_ = number == mixed ? kKvTile : number * kRowsOfGroup;
    } else {
      what_ = kRow;
      row_ = row < kRowsOfGroup ? mixed * kRowsOfGroup + row : kKvTile;
    }
  }

  template <int kPanels, int kBoxPanels>
  __forceinline__ void load(unsigned to, const TensorMap& pages, const NewRowsMaps& more, unsigned full,
                            int h) const {
    Loader::expect(full, Loader::number() == 0 ? kKvTile * kPanels * kPanelRowBytes : 0);
    if (row_ >= kKvTile) return;
    if (what_ == kOfPages) {
      load_groups<kPanels, kBoxPanels>(to, pages, full, h, row_, begin_ / kRowsOfGroup, 0);
    } else if (what_ == kNewTile) {
      load_groups<kPanels, kBoxPanels>(to, more.tile, full, h, 0, begin_ / kRowsOfGroup, begin_ % kRowsOfGroup);
    } else {
      load_piece<kPanels, kBoxPanels>(to, more.pieces[what_ / kPlaceOfPiece], full, h);
    }
  }

  template <int kPanels, int kBoxPanels>
  __forceinline__ void load_piece(unsigned to, const TensorMap& map, unsigned full, int h) const {
    const int rows = what_ % kPlaceOfPiece;
    const unsigned place = to + static_cast<unsigned>(row_ / kRowsOfGroup * group_distance(kBoxPanels) +
                                                      row_ % kRowsOfGroup * kPanelRowBytes);
#pragma unroll 1
    for (int panel = 0; panel < kPanels; ++panel) {
      load_box(place + panel * panel_distance(kBoxPanels), map, full, panel * panel_columns(kKvBytes),
               kRaggedRows - rows, h, begin_ + rows, kRaggedRows);
    }
  }

  int row_;    // its first, of the tile; past it where the lane brings nothing
  int begin_;  // its first row in the pool, counted as if all rows were of one page, or among the new ones
  int what_;
};

TW_INLINE KvBox k_box(const Loader& loader, const QTile& q_tile, int kv_len, int first) {
  return {q_tile, loader.k_page_rows(), kv_len, first};
}
TW_INLINE KvBox v_box(const Loader& loader, const QTile& q_tile, int kv_len, int first) {
  return {q_tile, loader.v_page_rows(), kv_len, first};
}

}  // namespace tw_kernel
