#pragma once

#include "abi/cpu.hpp"
#include "abi/cpu_packed_backward.hpp"
#include "abi/plan.hpp"
#include "abi/tile_map.hpp"
#include "cpu/backward.hpp"
#include "cpu/backward_tile.hpp"
#include "cpu/inline.hpp"
#include "cpu/load_lanes.hpp"
#include "cpu/vector.hpp"
#include "kernel/backward_call.hpp"
#include "kernel/configuration.hpp"

// dk and dv of a packed call: a tile owns rows of the packed k and v, and adds up what each sequence that
// has some of them gives. Lanes are those rows; a sequence's columns need not begin with a tile.

namespace tw_kernel {

using tilewright::abi::ColumnsOfTile;

// The lanes from begin to before end.
struct LanesBetween {
  int begin;
  int end;

  TW_MEMBER int first_chunk() const { return begin / kLanes; }
  TW_MEMBER int end_chunk() const { return (end + kLanes - 1) / kLanes; }
  TW_MEMBER Vector kept(int chunk, Vector x) const { return kept_or(chunk, x, Vector{}); }
  // The other lanes have `other`'s.
  TW_MEMBER Vector kept_or(int chunk, Vector x, Vector other) const {
    const int first = chunk * kLanes;
    if (begin <= first && first + kLanes <= end) return x;
    for (int lane = 0; lane < kLanes; ++lane) {
      if (first + lane < begin || first + lane >= end) x[lane] = other[lane];
    }
    return x;
  }
};

// Sums of the chunks at the ends of a sequence's lanes, whose other lanes are not its own. A product adds 0 times
// its rows to them, which is NaN where a row holds NaN or infinity.
template <int kDim>
class SumsAtEnds {
 public:
  TW_MEMBER SumsAtEnds(const LanesBetween& lanes, Vector* sums)
      : lanes_(lanes), first_(sums + lanes.first_chunk() * kDim), last_(sums + (lanes.end_chunk() - 1) * kDim) {
    for (int d = 0; d < kDim; ++d) before_first_[d] = first_[d];
    for (int d = 0; d < kDim; ++d) before_last_[d] = last_[d];
  }

  TW_MEMBER void restore_others() const {
    for (int d = 0; d < kDim; ++d) first_[d] = lanes_.kept_or(lanes_.first_chunk(), first_[d], before_first_[d]);
    for (int d = 0; d < kDim; ++d) last_[d] = lanes_.kept_or(lanes_.end_chunk() - 1, last_[d], before_last_[d]);
  }

 private:
  LanesBetween lanes_;
  Vector* first_;
  Vector* last_;
  Vector before_first_[kDim], before_last_[kDim];
};

TW_INLINE int count_chunks(int count) { return (count + kLanes - 1) / kLanes; }

TW_INLINE void begin_columns(const BackwardArguments& arguments, int h_kv, int first_row, int count,
                             Scratch& scratch) {
  const int chunks = count_chunks(count);
  load_lanes<kHeadDim>(row_of<const KvElement>(arguments.k, 0, h_kv, first_row),
                       arguments.k.row_stride, count, chunks, scratch.keys, scratch.row);
  load_lanes<kValueDim>(row_of<const KvElement>(arguments.v, 0, h_kv, first_row),
                        arguments.v.row_stride, count, chunks, scratch.values, scratch.row);
  for (int i = 0; i < chunks; ++i) scratch.ones[i] = broadcast(1.0f);
  for (int i = 0; i < chunks * kHeadDim; ++i) scratch.sum_keys[i] = Vector{};
  for (int i = 0; i < chunks * kValueDim; ++i) scratch.sum_values[i] = Vector{};
}

// Calls visit(begin, end, is_partial) for the rows of q that the map keeps for the columns.
template <typename Visit>
TW_INLINE void visit_kept_rows(const ColumnsOfTile& columns, int h, int q_len, Visit&& visit) {
  for (int q_block = 0; q_block < columns.q_blocks; ++q_block) {
    const tilewright::abi::TileSpan span =
        columns.spans[h * columns.head_stride + q_block * columns.row_stride];
    if ((span.kept >> columns.bit & 1u) == 0) continue;
    const tilewright::abi::RowsOfTiles rows =
        tilewright::abi::rows_of_tiles(q_len, columns.lead, q_block, kBlockQ);
    visit(rows.begin, rows.end, (span.partial >> columns.bit & 1u) != 0);
  }
}

TW_INLINE void add_columns(const BackwardArguments& arguments, const ColumnsOfTile& columns, int b,
                           int h_kv, Scratch& scratch) {
  const tilewright::abi::SnippetArguments& call = arguments.snippet;
  const LanesBetween lanes = {columns.begin, columns.end};
  const SumsAtEnds<kHeadDim> keys(lanes, scratch.sum_keys);
  const SumsAtEnds<kValueDim> values(lanes, scratch.sum_values);
  const int group = call.num_q_heads / call.num_kv_heads;
  for (int h = h_kv * group; h < (h_kv + 1) * group; ++h) {
    const Head head(arguments, b, h);
    const auto visit = [&](int begin, int end, bool is_partial) {
      for (int first = begin; first < end; first += kKvTile) {
        const int count = end - first < kKvTile ? end - first : kKvTile;
        visit_rows(head, columns.first_column, lanes, first, count, is_partial, scratch);
      }
    };
    if (kMasked) {
      visit_kept_rows(columns, h, call.q_len, visit);
    } else {
      visit(0, call.q_len, true);
    }
  }
  keys.restore_others();
  values.restore_others();
}

TW_INLINE void store_columns(const BackwardArguments& arguments, int h_kv, int first_row, int count,
                             Scratch& scratch) {
  for (int i = 0; i < count; ++i) {
    if (arguments.dk.data != nullptr) {
      store_lane<kHeadDim>(scratch.sum_keys, i, arguments.scale, false, scratch.row,
                           row_of<KvElement>(arguments.dk, 0, h_kv, first_row + i));
    }
    if (arguments.dv.data != nullptr) {
      store_lane<kValueDim>(scratch.sum_values, i, 1.0f, false, scratch.row,
                            row_of<KvElement>(arguments.dv, 0, h_kv, first_row + i));
    }
  }
}

}  // namespace tw_kernel
