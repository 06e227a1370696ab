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
#include "kernel/hopper_backward_turns.hpp"
#include "kernel/hopper_draws.hpp"

// A warpgroup that computes 64 columns of the block.

namespace tw_kernel {

// When the previous tile's dQ is handed over: at the end of this tile if the block waits for its turn, or if summing
// terms has taken long enough; else while the next tile's products run. The latter is faster for tiles of 64 rows whose
// sums each thread keeps.
constexpr bool kHandsOverAtOnce = kTakesTurns || (kGathers && !(kSumsAreOwn && kKvTile == 64));

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
    finish(maps, dk, dv);
  }

 private:
  // Tiles that drop elements have code of their own, unless registers are short: after a branch between weights and
  // gradients the compiler computes no exponentials among the gradients (decision 88).
  __forceinline__ void compute(const PassingTile& tile, float (&dk)[kRows][kKeySums],
                               float (&dv)[kRows][kValueSums]) {
    const bool some_dropped = drops_some(tile.rows);
    if (kIsTight) {
      compute_tile(tile, some_dropped, dk, dv);
    } else if (some_dropped) {
      compute_tile(tile, true, dk, dv);
    } else {
      compute_tile(tile, false, dk, dv);
    }
  }

  // A warpgroup computes dQ of the tile before, from dX of both: so one of them may be ahead (decision 87).
  __forceinline__ void compute_tile(const PassingTile& tile, bool some_dropped, float (&dk)[kRows][kKeySums],
                                    float (&dv)[kRows][kValueSums]) {
    Control& control = *shared_.control;
    const int stage = place_.stage;
    float s[kRows][kColumns], d[kRows][kColumns], dq[kRows][kDqColumns];
    unsigned p[kColumns], dx[kColumns];
    TileFacts facts(shared_.lse(stage));
    issue_own_scores(s, k_, operand_at(shared_.q(stage), 16));
    wait(shared_address(&control.do_full[stage]), place_.parity, "dO, stage", stage);
    issue_weight_gradients(d, v_, operand_at(shared_.dout(stage), 16));
    hand_over_staged();  // while products run

    const ElementInputs inputs = inputs_of(tile.h);
    KeptElements kept;
    if (some_dropped) kept = find_own_kept_elements(inputs, tile.rows);
    const DroppedProducts products = draw_tile(inputs, tile.rows.first());
    const unsigned to = gradient_address_ + gradient_stage_ * kGradientBytes;
    gathered_.begin_tile(inputs, tile.rows.first(), gradient_stage_);
    find_differences(inputs, tile.rows.first());
    wait_for_scores<kWaitsForBoth ? 0 : 1>(s);
    if constexpr (kWaitsForBoth) {
      wait_for_scores<0>(d);
      wait_for_place_of_gradients();
      if (some_dropped) {
        weigh_and_differentiate_tile<true>(inputs, tile.rows, facts, kept, products, differences_, s, d, to, dx, p,
                                           gathered_);
      } else {
        weigh_and_differentiate_tile<false>(inputs, tile.rows, facts, kept, products, differences_, s, d, to, dx, p,
                                            gathered_);
      }
    } else {
      constexpr int kEarly = kIsTight ? kColumnGroups : kColumnGroups / 2;
      weigh_groups<0, kEarly>(inputs, tile.rows, facts, some_dropped, kept, products, differences_, s, p);
      wait_for_place_of_gradients();  // a branch: groups after it are weighed among gradients
      weigh_groups<kEarly, kColumnGroups>(inputs, tile.rows, facts, some_dropped, kept, products, differences_, s, p);
      wait_for_scores<0>(d);
      differentiate_tile(inputs, tile.rows, products, s, d, facts, to, dx, p, gathered_);
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
    if (has_before_) stage_dq(shared_, number_, dq);  // while dK runs
    has_staged_ = has_before_;
    has_before_ = true;
    gathered_.end_tile(inputs, tile.rows.first());  // while dK runs too
    if (kHandsOverAtOnce) hand_over_staged();
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

  // Some time after dQ was staged: the fence waits for stores to shared memory, which wait for operands of products.
  __forceinline__ void hand_over_staged() {
    if (has_staged_) hand_over_dq(number_);
    has_staged_ = false;
  }

  // Of the tile before, in its place of two.
  __forceinline__ unsigned parity_before() const { return gradient_parity_ ^ gradient_stage_ ^ 1; }

  // dQ of the last tile, dK and dV. Nobody else reads the warpgroup's rows of V.
  __forceinline__ void finish(const BackwardMaps& maps, const float (&dk)[kRows][kKeySums],
                              const float (&dv)[kRows][kValueSums]) {
    const SumsPlace place = {number_ * kOwnRows, 0};
    float dq[kRows][kDqColumns];
    hand_over_staged();
    issue_dq_of_tile_before(dq);
    store_sums(shared_.v(), maps.dv, call_, own_, number_, place, 1.0f, dv);  // while dQ runs
    wait_for_dq<0>(dq);
    sync_named<kConsumers * kWarpgroup>(kGradientsBarrier);  // K is no longer read
    store_sums(shared_.k(), maps.dk, call_, own_, number_, place, arguments_.scale, dk);
    if (has_before_) {
      stage_dq(shared_, number_, dq);
      hand_over_dq(number_);
    } else {
      hand_over_nothing(number_);
    }
    wait_for_stores();
  }

  const unsigned k_;  // operands: the warpgroup's rows of K and V
  const unsigned v_;
  bool has_before_ = false;       // a tile, whose dQ is still to be computed
  bool has_staged_ = false;       // dQ of a tile, which is still to be handed over
  unsigned gradient_parity_ = 0;  // of the phase in which this tile's dX becomes full
};

TW_INLINE void consume(const HopperBackwardArguments& arguments, const BackwardMaps& maps,
                       const SnippetArguments& call, const GradientSums& sums, const Shared& shared,
                       const OwnColumns& own, int number) {
  Consumer(arguments, call, sums, shared, own, number).run(maps);
}

}  // namespace tw_kernel
