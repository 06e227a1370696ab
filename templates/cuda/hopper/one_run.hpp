#pragma once

#include "cuda/attention/modify.hpp"
#include "cuda/hopper/masked_tiles.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/hopper/tile_visits.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/store/row_ends.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"

// All rows of a q tile have the same kv tiles: those of one row of the mask, or all. A consumer visits them
// in one run, those that need care first.

namespace tw_kernel {

class OneRun {
 public:
  __forceinline__ explicit OneRun(int) {}

  template <typename Visits>
  __forceinline__ RowEnds visit_all(Visits& visits, QRows& rows, const WorkItem& work) {
    const int kv_tiles = work.kv_tiles;
    const int masked_tiles = work.masked_tiles;
    PendingTile before;
    int i = 0;
    int left_out = 0;  // the first tiles; never all, as the last product needs one
    if (!kOneLoop) {
#pragma unroll 1
      for (; i < masked_tiles; ++i) {
        const bool may_leave_out = i == left_out && i + 1 < kv_tiles;
        if (!visits.template visit<!kBoundsIndices>(rows, true, may_leave_out, i > left_out, before)) {
          ++left_out;
        }
      }
    }
#pragma unroll 1
    for (; i < kv_tiles; ++i) {
      const bool masked = kOneLoop && (kAllMasked || i < masked_tiles);
      visits.template visit<true>(rows, masked, false, i > left_out, before);
    }
    if (!kOutOverQ || !kStoresBoxes) release(rows.q_empty);
    return visits.finish(rows, before);
  }

  // Whether elements of the tile at hand may be dropped.
  __forceinline__ bool look_at(const KvTile&, const SnippetInputs&, const SnippetArguments&, bool masked) {
    return masked;
  }
  __forceinline__ KvTile as_kv_tile(const KvTile& tile) const { return tile; }
};

}  // namespace tw_kernel
