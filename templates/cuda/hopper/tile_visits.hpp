#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/modify.hpp"
#include "cuda/attention/softmax.hpp"
#include "cuda/constants.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/products.hpp"
#include "cuda/hopper/q_tile_scores.hpp"
#include "cuda/hopper/softmax_step.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/hopper/warpgroup_order.hpp"
#include "cuda/ptx/warpgroup.hpp"
#include "cuda/store/row_ends.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "cuda/tile/panel.hpp"
#include "kernel/configuration.hpp"
#include "kernel/dropout.hpp"
#include "kernel/hopper_draws.hpp"
#include "kernel/joined_rows.hpp"

// The main loop of a warpgroup that computes 64 rows of q: an online softmax over the kv tiles, in which
// the scores of a tile are multiplied while the values of the tile before are.

namespace tw_kernel {

// A warpgroup's rows of a q tile, while its kv tiles are visited.
struct QRows {
  const SnippetInputs& inputs;
  const unsigned long long q;  // descriptor
  unsigned long long& q_empty;
  Softmax& softmax;
  float (&out)[kRows][kOutColumns];
};

// The last tile that was visited: its weights are still to be multiplied by its values.
struct PendingTile {
  KvPlace place;
  bool begins;               // nothing was multiplied before: what out holds does not count
  unsigned p[kWeightWords];  // not set: zeros that live up to the first tile make ptxas spill
};

// Ring: where tiles of K and V are, KvRing or ResidentTiles.
// Runs: how the kv tiles of a q tile are gone through, OneRun, OwnRuns or TilesOneByOne.
template <typename Ring, typename Runs>
class TileVisits {
 public:
  // number: of the warpgroup
  __forceinline__ TileVisits(const ForwardArguments& arguments, const SnippetArguments& call,
                             const Shared& shared, int number)
      : call_(call),
        number_(number),
        k_(make_descriptor(shared.k(0), 0, group_distance(kKTilePanels))),
        v_(make_descriptor(shared.v(0), panel_distance(kVTilePanels), group_distance(kVTilePanels))),
        scores_(arguments, number, shared.differences()),
        ring_(shared, number),
        runs_(number) {}

  __forceinline__ Ring& ring() { return ring_; }
  __forceinline__ Runs& runs() { return runs_; }
  __forceinline__ QTileScores& scores() { return scores_; }

  // The tile at hand, in the order of the main loop.
  // kInside: no index needs bounds. masked: elements may be dropped, and rows or columns may not exist, if
  // Runs does not know better. has_before: `before` has the weights of a tile. It becomes this tile.
  // Returns false where it left the tile out, which it may not where has_before.
  template <bool kInside>
  __forceinline__ bool visit(QRows& rows, bool masked, bool may_leave_out, bool has_before, PendingTile& before) {
    const SnippetInputs& inputs = rows.inputs;
    const float to_log2 = scores_.to_log2();
    const int stage = ring_.place().stage;

    // K of this tile; a tile of which the mask keeps nothing may end here.
    ring_.wait_for_k();
    Kept kept;
    if constexpr (Ring::kMayLeaveOut) {
      if (masked) {
        kept = find_kept(inputs, runs_.as_kv_tile(ring_.tile()));
        const bool keeps = (kept.word[0] | kept.word[1]) != 0;
        if (may_leave_out && !any_of_warpgroup(kOwnBarrier + number_, keeps)) {
          ring_.pass_by();
          return false;
        }
      }
    }

    // Both products begin: S = Q K^T of this tile, and O += P V of the tile before.
    float s[kRows][kColumns];
    scores_.start(s);
    WarpgroupOrder::wait_for_mine(number_);
    issue_scores(s, rows.q, k_ + stage * (kKBytes >> 4));
    if (has_before) {
      multiply_values(rows, before);
    } else {
      issue_nothing();
    }
    WarpgroupOrder::signal_next(number_);

    // Meanwhile the mask, and what dropout draws.
    const auto visited = ring_.tile();
    masked = runs_.look_at(visited, inputs, call_, masked);
    const KvTile tile = runs_.as_kv_tile(visited);
    if (kHasMaskMod && masked && !Ring::kMayLeaveOut) kept = find_kept(inputs, tile);
    const bool loads_in_bounds = scores_.loads_in_bounds(inputs, tile.first(), masked);
    const auto drawn = draw_tile(inputs, tile.first());
    scores_.find_differences(inputs, tile.first());

    // S is there: score_mod, the mask, and the weights P.
    wait_for_scores(s);
    ring_.give_back_k();
    const float shift = scores_.template modify<kInside>(inputs, tile.first(), loads_in_bounds, s);
    if (masked && !kHasFixedMax) drop_elements(inputs, tile, kept, -kInfinity, s);
    const float sum_before[kRows] = {rows.softmax.sum[0], rows.softmax.sum[1]};
    float alpha[kRows];
    const bool raises = weigh(shift, to_log2, rows.softmax, s, alpha);

    // O is there: V of the tile before is given back, and O rescaled.
    wait_for_values(rows.out, before.p);
    if (has_before) ring_.give_back_v(before.place);
    if (masked && kHasFixedMax) {
      // Here, as no maximum needs to know: score_mod and the exponentials stay one piece to be scheduled.
      drop_elements(inputs, tile, kept, 0.0f, s);
      sum_weights(s, sum_before, rows.softmax);
    }
    drop_weights(drawn, s);
    pack_weights(s, before.p);
    if (raises && (has_before || !Ring::kBeginsEmpty)) rescale(alpha, rows.out);
    before.place = ring_.place();
    before.begins = !has_before;
    ring_.advance();
    return true;
  }

  // After a run: the values of its last tile.
  __forceinline__ RowEnds finish(QRows& rows, PendingTile& before) {
    multiply_values(rows, before);
    const RowEnds ends = end(rows);
    wait_for_values(rows.out, before.p);
    ring_.give_back_v(before.place);
    return ends;
  }

  __forceinline__ RowEnds end(const QRows& rows) const {
    return end_run(scores_, call_, rows.inputs, rows.softmax);
  }

 private:
  // O += P V of the tile
  __forceinline__ void multiply_values(QRows& rows, const PendingTile& tile) {
    ring_.wait_for_v(tile.place);
    issue_values(rows.out, tile.p, v_ + tile.place.stage * (kVBytes >> 4), !Ring::kBeginsEmpty || !tile.begins);
  }

  const SnippetArguments& call_;
  const int number_;
  const unsigned long long k_;  // of the first stage, like the next
  const unsigned long long v_;
  QTileScores scores_;
  Ring ring_;
  Runs runs_;
};

}  // namespace tw_kernel
