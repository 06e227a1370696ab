#pragma once

#include "cuda/attention/modify.hpp"
#include "cuda/hopper/kv_ring.hpp"
#include "cuda/hopper/masked_tiles.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/hopper/tile_visits.hpp"
#include "cuda/hopper/two_block_tile.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/store/row_ends.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"

// A q tile covers rows of two blocks of the mask, and a warpgroup's rows lie in one of them. A consumer visits
// runs of kv tiles of which its rows have something. Between them, where no product is under way, tiles are
// given back that only the others compute with.

namespace tw_kernel {

class OwnRuns {
 public:
  // number: of the warpgroup.
  __forceinline__ explicit OwnRuns(int number) : number_(number) {}

  template <typename Visits>
  __forceinline__ RowEnds visit_all(Visits& visits, QRows& rows, const WorkItem&) {
    const SnippetInputs& inputs = rows.inputs;
    mask_row_ = (inputs.q_tile->row_in_block(inputs.q_tile->first_row) + number_ * 64) / kBlockQ;
    is_last_ = false;
    RowEnds ends = visits.end(rows);
#pragma unroll 1
    while (find_run(visits.ring())) {
      PendingTile before;
      bool has_before = false;
#pragma unroll 1
      do {
        visits.template visit<!kBoundsIndices>(rows, true, false, has_before, before);
        has_before = true;
      } while (next_is(TileState::partial) || (kOneLoop && next_is(TileState::full)));
#pragma unroll 1
      while (!kOneLoop && next_is(TileState::full)) {
        visits.template visit<!kBoundsIndices>(rows, false, false, true, before);
      }
      ends = visits.finish(rows, before);
    }
    if (!kOutOverQ || !kStoresBoxes) release(rows.q_empty);
    return ends;
  }

  // Whether elements of the tile at hand may be dropped, where it is in a loop of such tiles: the tile says
  // it, and what the rows have of the next one.
  __forceinline__ bool look_at(const TwoBlockTile& tile, const SnippetInputs& inputs, const SnippetArguments& call,
                               bool masked) {
    next_ = static_cast<unsigned>(tile.state_in_next(mask_row_));
    asm volatile("" : "+r"(next_));  // found here, where the scores are waited for
    is_last_ = tile.is_last();
    return masked && (tile.state(mask_row_) == TileState::partial ||
                      tile.first() + kKvTile > inputs.q_tile->kv_len(call));
  }
  __forceinline__ KvTile as_kv_tile(const TwoBlockTile& tile) const {
    return tw_kernel::as_kv_tile(tile, mask_row_);
  }

 private:
  __forceinline__ bool next_is(TileState state) const {
    return next_ == static_cast<unsigned>(state);
  }

  // Whether there is another run, which begins with the tile at hand.
  __forceinline__ bool find_run(KvRing& ring) {
#pragma unroll 1
    while (!is_last_) {
      ring.wait_for_k();
      const TwoBlockTile tile = ring.tile();
      if (tile.state(mask_row_) != TileState::absent) return true;
      is_last_ = tile.is_last();
      ring.pass_by();
    }
    return false;
  }

  const int number_;
  int mask_row_;   // of the q tile's two, in which this warpgroup's rows lie
  unsigned next_;  // a TileState: what it has of the next kv tile
  bool is_last_;   // whether there is no next one
};

}  // namespace tw_kernel
