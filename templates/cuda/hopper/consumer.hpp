#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/modify.hpp"
#include "cuda/attention/softmax.hpp"
#include "cuda/constants.hpp"
#include "cuda/hopper/kv_ring.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/masked_tiles.hpp"
#include "cuda/hopper/pipeline.hpp"
#include "cuda/hopper/products.hpp"
#include "cuda/hopper/q_tile_scores.hpp"
#include "cuda/hopper/softmax_step.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/hopper/warpgroup_order.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "cuda/ptx/warpgroup.hpp"
#include "cuda/store/row_ends.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "cuda/tile/panel.hpp"
#include "kernel/configuration.hpp"
#include "kernel/dropout.hpp"
#include "kernel/hopper_draws.hpp"
#include "kernel/joined_rows.hpp"
#include "kernel/store_out.hpp"
#include "kernel/tiles.hpp"
#include "snippet/snippets.hpp"

// A warpgroup that computes 64 rows of each q tile: an online softmax over the kv tiles, in which
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
  unsigned p[kWeightWords];  // not set: zeros that live up to the first tile make ptxas spill
};

// Runs: how the kv tiles of a q tile are gone through, OneRun or OwnRuns.
template <typename Runs>
class Consumer {
 public:
  __forceinline__ Consumer(const ForwardArguments& arguments, const TensorMaps& maps,
                           const SnippetArguments& call, const Shared& shared, int number)
      : arguments_(arguments),
        maps_(maps),
        call_(call),
        shared_(shared),
        number_(number),
        q_(make_descriptor(shared.q(0, number), 0)),
        k_(make_descriptor(shared.k(0), 0, group_distance(kKTilePanels))),
        v_(make_descriptor(shared.v(0), panel_distance(kVTilePanels), group_distance(kVTilePanels))),
        scores_(arguments, number, shared.differences()),
        ring_(shared, number),
        runs_(number) {}

  __forceinline__ void run() {
    WarpgroupOrder::start(number_);
#pragma unroll 1
    while (compute()) q_place_.advance();
    if (kStoresBoxes) wait_until_stores_read();
  }

  __forceinline__ KvRing& ring() { return ring_; }

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
    if (kLeavesOut && masked) {
      kept = find_kept(inputs, runs_.as_kv_tile(ring_.tile()));
      const bool keeps = (kept.word[0] | kept.word[1]) != 0;
      if (may_leave_out && !any_of_warpgroup(kOwnBarrier + number_, keeps)) {
        ring_.pass_by();
        return false;
      }
    }

    // Both products begin: S = Q K^T of this tile, and O += P V of the tile before.
    float s[kRows][kColumns];
    scores_.start(s);
    WarpgroupOrder::wait_for_mine(number_);
    issue_scores(s, rows.q, k_ + stage * (kKBytes >> 4));
    if (has_before) {
      ring_.wait_for_v(before.place);
      issue_values(rows.out, before.p, v_ + before.place.stage * (kVBytes >> 4));
    } else {
      issue_nothing();
    }
    WarpgroupOrder::signal_next(number_);

    // Meanwhile the mask, and what dropout draws.
    const Tiles::Tile visited = ring_.tile();
    masked = runs_.look_at(visited, inputs, call_, masked);
    const KvTile tile = runs_.as_kv_tile(visited);
    if (kHasMaskMod && masked && !kLeavesOut) kept = find_kept(inputs, tile);
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
    if (raises) rescale(alpha, rows.out);
    before.place = ring_.place();
    ring_.advance();
    return true;
  }

  // After a run: the values of its last tile.
  __forceinline__ RowEnds finish(QRows& rows, PendingTile& before) {
    ring_.wait_for_v(before.place);
    issue_values(rows.out, before.p, v_ + before.place.stage * (kVBytes >> 4));
    const RowEnds ends = end(rows);
    wait_for_values(rows.out, before.p);
    ring_.give_back_v(before.place);
    return ends;
  }

  __forceinline__ RowEnds end(const QRows& rows) const {
    return end_run(scores_, call_, rows.inputs, rows.softmax);
  }

 private:
  // The next q tile. False where there is none left.
  __forceinline__ bool compute() {
    Control& control = *shared_.control;
    const int q_stage = q_place_.q().stage();
    wait(shared_address(&control.q_full[q_stage]), q_place_.q().parity(), "Q, stage", q_stage);
    const WorkItem& work = control.work[q_place_.work()];
    if (work.kv_tiles == 0) return false;
    const bool has_rows = work.q_tile.first_row + number_ * 64 < work.q_tile.q_len(call_);
    if (!has_rows) {
      ring_.pass_by_all(work.kv_tiles);
      release(control.q_empty[q_stage]);
      return true;
    }
    const tw_snippet::tw_Loads head_loads = load_for_head(call_, work.q_tile);
    const SnippetInputs inputs = snippet_inputs(call_, work.q_tile, head_loads);
    scores_.begin(inputs);

    Softmax softmax = start_softmax();
    float out[kRows][kOutColumns] = {};
    QRows rows = {inputs, q_ + q_stage * (kConsumers * kQGroupBytes >> 4), control.q_empty[q_stage], softmax, out};
    RowEnds ends = runs_.visit_all(*this, rows, work);
    if (join_parts(arguments_, call_, work, number_, scores_, inputs, softmax, out, ends)) {
      store_out(arguments_, maps_, call_, shared_, work.q_tile, q_stage, number_, ends, out);
    }
    if (kOutOverQ && kStoresBoxes) release(rows.q_empty);
    return true;
  }

  const ForwardArguments& arguments_;
  const TensorMaps& maps_;
  const SnippetArguments& call_;
  const Shared shared_;
  const int number_;
  const unsigned long long q_;  // of the first stage, like the next two
  const unsigned long long k_;
  const unsigned long long v_;
  QPlace q_place_;
  QTileScores scores_;
  KvRing ring_;
  Runs runs_;
};

}  // namespace tw_kernel
