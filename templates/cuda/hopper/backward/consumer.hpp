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
    hand_over_nothing(number_);
    sync_named<kConsumers * kWarpgroup>(kGradientsBarrier);  // K and V are no longer read
    const SumsPlace place = {number_ * kOwnRows, 0};
    store_sums(shared_.v(), maps.dv, call_, own_, number_, place, 1.0f, dv);
    store_sums(shared_.k(), maps.dk, call_, own_, number_, place, arguments_.scale, dk);
    wait_for_stores();
  }

 private:
  // The order is FlashAttention-3's: the measurements of others were slower (decision 67).
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
    const unsigned lse = shared_.lse(stage), delta = shared_.delta(stage);
    const unsigned to = gradient_address_ + gradient_stage_ * kGradientBytes;
    gathered_.begin_tile(gradient_stage_);
    wait_for_scores<kWaitsForBoth ? 0 : 1>(s);
    if constexpr (kWaitsForBoth) {
      wait_for_scores<0>(d);
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
      wait_for_scores<0>(d);
      differentiate_tile(inputs, tile.rows, products, s, d, delta, to, dx, p, gathered_);
    }
    issue_sums(dv, p, operand_at(shared_.dout(stage), kTilePanelBytes));
    fence_for_copies();
    sync_named<kConsumers * kWarpgroup>(kGradientsBarrier);
    const unsigned gradients = shared_.gradients(gradient_stage_);
    issue_dq(dq,
             operand_at(gradients + (kSplitsDqRows ? number_ * 64 * kPanelRowBytes : 0), 16),
             operand_at(shared_.k() + (kSplitsDqRows ? 0 : number_ * kOwnPanelBytes), kOwnPanelBytes));
    issue_sums(dk, dx, operand_at(shared_.q(stage), kTilePanelBytes));
    wait_for_sums<2>(dv, p);
    release(control.do_empty[stage]);
    wait_for_dq<1>(dq);
    hand_over_dq(shared_, number_, dq);  // while dK runs
    gathered_.end_tile(inputs, tile.rows.first());  // while dK runs too
    gradient_stage_ ^= 1;
    place_.advance();
    wait_for_sums<0>(dk, dx);
    release(control.q_empty[stage]);
  }

  const unsigned k_;  // operands: the warpgroup's rows of K and V
  const unsigned v_;
};

TW_INLINE void consume(const HopperBackwardArguments& arguments, const BackwardMaps& maps,
                       const SnippetArguments& call, const GradientSums& sums, const Shared& shared,
                       const OwnColumns& own, int number) {
  Consumer(arguments, call, sums, shared, own, number).run(maps);
}

}  // namespace tw_kernel
