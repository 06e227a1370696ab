#pragma once

#include "abi/cuda_hopper_backward.hpp"
#include "cuda/backward/element_inputs.hpp"
#include "cuda/backward/elements.hpp"
#include "cuda/hopper/backward/consumer_base.hpp"
#include "cuda/hopper/backward/dq_sums.hpp"
#include "cuda/hopper/backward/elements.hpp"
#include "cuda/hopper/backward/gather.hpp"
#include "cuda/hopper/backward/layout.hpp"
#include "cuda/hopper/backward/pipeline.hpp"
#include "cuda/hopper/backward/products.hpp"
#include "cuda/hopper/backward/store.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "cuda/ptx/warpgroup.hpp"
#include "kernel/backward_dropout.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"
#include "kernel/hopper_backward_tile.hpp"
#include "kernel/hopper_draws.hpp"

// A warpgroup that computes 64 columns of the block.

namespace tw_kernel {

class Consumer : ConsumerBase {
 public:
  __forceinline__ Consumer(const HopperBackwardArguments& arguments, const SnippetArguments& call,
                           const GradientSums& sums, const Shared& shared, const OwnColumns& own,
                           int number)
      : ConsumerBase(arguments, call, sums, shared, own, number),
        k_(operand_at(shared.k() + number * kOwnRows * kPanelRowBytes, 16)),
        v_(operand_at(shared.v() + number * kOwnRows * kPanelRowBytes, 16)) {}

  __forceinline__ void run(const BackwardMaps& maps) {
    float dk[kRows][kKeySums], dv[kRows][kValueSums];
    clear_sums(dk);
    clear_sums(dv);
    compute_all([&](const PassingTile& tile) { compute(tile, dk, dv); });
    if (has_before_) finish_dq();
    hand_over_nothing(number_);
    sync_named<kConsumers * kWarpgroup>(kGradientsBarrier);  // K and V are no longer read
    const SumsPlace place = {number_ * kOwnRows, 0};
    store_sums(shared_.v(), maps.dv, call_, own_, number_, place, 1.0f, dv);
    store_sums(shared_.k(), maps.dk, call_, own_, number_, place, arguments_.scale, dk);
    wait_for_stores();
  }

 private:
  // A warpgroup computes dQ of the tile before, from dX of both: so one of them may be ahead (decision 87).
  __forceinline__ void compute(const PassingTile& tile, float (&dk)[kRows][kKeySums],
                               float (&dv)[kRows][kValueSums]) {
    Control& control = *shared_.control;
    const int stage = place_.stage;
    float s[kRows][kColumns], d[kRows][kColumns], dq[kRows][kDqColumns];
    unsigned p[kColumns], dx[kColumns];
    issue_own_scores(s, k_, operand_at(shared_.q(stage), 16));
    wait(shared_address(&control.do_full[stage]), place_.parity, "dO, stage", stage);
    issue_weight_gradients(d, v_, operand_at(shared_.dout(stage), 16));

    const ElementInputs inputs = inputs_of(tile.h);
    const bool some_dropped = drops_some(tile.rows);
    KeptElements kept;
    if (some_dropped) kept = find_own_kept_elements(inputs, tile.rows);
    const DroppedProducts products = draw_tile(inputs, tile.rows.first());
    const unsigned to = gradient_address_ + gradient_stage_ * kGradientBytes;
    gathered_.begin_tile(gradient_stage_);
    TileFacts lse(shared_.lse(stage));
    wait_for_scores<kWaitsForBoth ? 0 : 1>(s);
    if constexpr (kWaitsForBoth) {
      TileFacts delta(shared_.delta(stage));
      wait_for_scores<0>(d);
      wait_for_place_of_gradients();
      if (some_dropped) {
        weigh_and_differentiate_tile<true>(inputs, tile.rows, lse, delta, kept, products, s, d, to, dx, p,
                                           gathered_);
      } else {
        weigh_and_differentiate_tile<false>(inputs, tile.rows, lse, delta, kept, products, s, d, to, dx, p,
                                           gathered_);
      }
    } else {
      if (some_dropped) {
        weigh_tile<true>(inputs, tile.rows, lse, kept, products, s, p);
      } else {
        weigh_tile<false>(inputs, tile.rows, lse, kept, products, s, p);
      }
      TileFacts delta(shared_.delta(stage));
      wait_for_scores<0>(d);
      wait_for_place_of_gradients();
      differentiate_tile(inputs, tile.rows, products, s, d, delta, to, dx, p, gathered_);
    }
    issue_sums(dv, p, operand_at(shared_.dout(stage), kTilePanelBytes));
    fence_for_copies();
    release(control.gradients_full[gradient_stage_]);
    if constexpr (kRowReads > 0) sync_named<kConsumers * kWarpgroup>(kGradientsBarrier);  // terms of rows are there
    issue_dq_of_tile_before(dq);
    issue_sums(dk, dx, operand_at(shared_.q(stage), kTilePanelBytes));
    wait_for_sums<2>(dv, p);
    release(control.do_empty[stage]);
    wait_for_dq<1>(dq);
    release(control.gradients_read[gradient_stage_]);
    if (has_before_) hand_over_dq(shared_, number_, dq);  // while dK runs
    has_before_ = true;
    gathered_.end_tile(inputs, tile.rows.first());  // while dK runs too
    gradient_parity_ ^= gradient_stage_;
    gradient_stage_ ^= 1;
    place_.advance();
    wait_for_sums<0>(dk, dx);
    release(control.q_empty[stage]);
  }

  // All warps have read the dX that lies where this tile's goes.
  __forceinline__ void wait_for_place_of_gradients() const {
    const int before = gradient_stage_ ^ 1;
    wait(shared_address(&shared_.control->gradients_read[before]), parity_before(), "a place for dX, stage", before);
  }

  // The first tile has none before it: it multiplies what lies there, and nobody takes the product.
  __forceinline__ void issue_dq_of_tile_before(float (&dq)[kRows][kDqColumns]) const {
    const int before = gradient_stage_ ^ 1;
    wait(shared_address(&shared_.control->gradients_full[before]), parity_before(), "dX, stage", before);
    issue_dq(dq,
             operand_at(shared_.gradients(before) + (kSplitsDqRows ? number_ * 64 * kPanelRowBytes : 0), 16),
             operand_at(shared_.k() + (kSplitsDqRows ? 0 : number_ * kOwnPanelBytes), kOwnPanelBytes));
  }

  // Of the tile before, in its place of two.
  __forceinline__ unsigned parity_before() const { return gradient_parity_ ^ gradient_stage_ ^ 1; }

  __forceinline__ void finish_dq() const {
    float dq[kRows][kDqColumns];
    issue_dq_of_tile_before(dq);
    wait_for_dq<0>(dq);
    hand_over_dq(shared_, number_, dq);
  }

  const unsigned k_;  // operands: the warpgroup's rows of K and V
  const unsigned v_;
  bool has_before_ = false;       // a tile, whose dQ is still to be computed
  unsigned gradient_parity_ = 0;  // of the phase in which this tile's dX becomes full
};

TW_INLINE void consume(const HopperBackwardArguments& arguments, const BackwardMaps& maps,
                       const SnippetArguments& call, const GradientSums& sums, const Shared& shared,
                       const OwnColumns& own, int number) {
  Consumer(arguments, call, sums, shared, own, number).run(maps);
}

}  // namespace tw_kernel
