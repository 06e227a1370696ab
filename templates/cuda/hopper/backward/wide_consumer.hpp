#pragma once

#include "abi/cuda_hopper_backward.hpp"
#include "cuda/backward/element_inputs.hpp"
#include "cuda/backward/elements.hpp"
#include "cuda/hopper/backward/consumer_base.hpp"
#include "cuda/hopper/backward/elements.hpp"
#include "cuda/hopper/backward/gather.hpp"
#include "cuda/hopper/backward/layout.hpp"
#include "cuda/hopper/backward/pipeline.hpp"
#include "cuda/hopper/backward/products.hpp"
#include "cuda/hopper/backward/store.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/add_float.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/store_transposed.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "cuda/ptx/warpgroup.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/backward_dropout.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"
#include "kernel/hopper_backward_tile.hpp"
#include "kernel/hopper_backward_turns.hpp"
#include "kernel/hopper_draws.hpp"

// A warpgroup of a block whose head dimension is shared (layout.hpp).

namespace tw_kernel {

// kKeyShare: columns of dK and dQ that it owns; kValueShare: of dV
template <int kKeyShare, int kValueShare>
class WideConsumer : ConsumerBase {
 public:
  __forceinline__ WideConsumer(const HopperBackwardArguments& arguments, const SnippetArguments& call,
                               const GradientSums& sums, const Shared& shared, const OwnColumns& own, int number)
      : ConsumerBase(arguments, call, sums, shared, own, number),
        key_panel_(number == 0 ? 0 : key_share(0) / kPanelColumns),
        value_panel_(number == 0 ? 0 : value_share(0) / kPanelColumns) {}

  __forceinline__ void run(const BackwardMaps& maps) {
    float dk[kRows][count(kKeyShare)], dv[kRows][count(kValueShare)];
    clear_sums(dk);
    clear_sums(dv);
    compute_all([&](const PassingTile& tile) { compute(tile, dk, dv); });
    sync_named<kConsumers * kWarpgroup>(kGradientsBarrier);  // K and V are no longer read
    if constexpr (kValueShare > 0) {
      store_sums(shared_.v(), maps.dv, call_, own_, number_, {0, value_panel_}, 1.0f, dv);
    }
    if constexpr (kKeyShare > 0) {
      store_sums(shared_.k(), maps.dk, call_, own_, number_, {0, key_panel_}, arguments_.scale, dk);
    }
    wait_for_stores();
  }

 private:
  // An array has one element at least.
  static constexpr int count(int share) { return share == 0 ? 1 : share / 4; }

  __forceinline__ void compute(const PassingTile& tile, float (&dk)[kRows][count(kKeyShare)],
                               float (&dv)[kRows][count(kValueShare)]) {
    Control& control = *shared_.control;
    const int stage = place_.stage;
    float s[kRows][kColumns], d[kRows][kColumns], dq[kRows][count(kKeyShare)];
    unsigned p[kColumns], dx[kColumns];
    const unsigned first_row = number_ * kScoreRows;
    issue_own_scores(s, operand_at(shared_.k(), 16),
                     operand_at(shared_.q(stage) + first_row * kPanelRowBytes, 16));
    wait(shared_address(&control.do_full[stage]), place_.parity, "dO, stage", stage);
    issue_weight_gradients(d, operand_at(shared_.v(), 16),
                           operand_at(shared_.dout(stage) + first_row * kPanelRowBytes, 16));

    const ElementInputs inputs = inputs_of(tile.h);
    const KvTile rows(tile.rows.first() + static_cast<int>(first_row), tile.rows.partial());
    const bool some_dropped = drops_some(tile.rows);
    KeptElements kept;
    if (some_dropped) kept = find_own_kept_elements(inputs, rows);
    const DroppedProducts products = draw_tile(inputs, rows.first());
    TileFacts facts(shared_.lse(stage) + first_row * 4);
    const unsigned to = gradient_address_ + gradient_stage_ * kGradientBytes;
    gathered_.begin_tile(inputs, rows.first(), gradient_stage_);
    find_differences(inputs, rows.first());
    wait_for_scores<1>(s);
    weigh_groups<0, kColumnGroups>(inputs, rows, facts, some_dropped, kept, products, differences_, s, p);
    store_weights(to + kTilePanelBytes, p);
    wait_for_scores<0>(d);
    differentiate_tile(inputs, rows, products, s, d, facts, to, dx, p, gathered_);
    fence_for_copies();
    sync_named<kConsumers * kWarpgroup>(kGradientsBarrier);
    const unsigned gradients = shared_.gradients(gradient_stage_);
    if constexpr (kValueShare > 0) {
      issue_share(dv, operand_at(gradients + kTilePanelBytes, 16),
                  operand_at(shared_.dout(stage) + value_panel_ * kTilePanelBytes, kTilePanelBytes));
    }
    if constexpr (kKeyShare > 0) {
      issue_dq(dq, operand_at(gradients, 16),
               operand_at(shared_.k() + key_panel_ * kOwnPanelBytes, kOwnPanelBytes));
      issue_share(dk, operand_at(gradients, 16),
                  operand_at(shared_.q(stage) + key_panel_ * kTilePanelBytes, kTilePanelBytes));
    }
    if constexpr (kValueShare > 0) wait_for_share<(kKeyShare > 0) ? 2 : 0>(dv);
    release(control.do_empty[stage]);
    if constexpr (kKeyShare > 0) {
      wait_for_share<1>(dq);
      add_dq(tile, dq);  // while dK runs
    }
    gradient_stage_ ^= 1;
    place_.advance();
    if constexpr (kKeyShare > 0) wait_for_share<0>(dk);
    release(control.q_empty[stage]);
  }

  // P, as differentiate_group stores dX.
  static __forceinline__ void store_weights(unsigned to, const unsigned (&p)[kColumns]) {
#pragma unroll
    for (int group = 0; group < kColumnGroups; ++group) {
      const unsigned matrices[4] = {p[group * 4], p[group * 4 + 1], p[group * 4 + 2], p[group * 4 + 3]};
      store_matrices_transposed(to + group * 16 * kPanelRowBytes, matrices);
    }
  }

  // Shared memory has no room for a part of dQ, from which a warp of its own could add it.
  __forceinline__ void add_dq(const PassingTile& tile, const float (&dq)[kRows][count(kKeyShare)]) const {
    float* const sums = arguments_.dq_sums +
                        number_of_tile(arguments_, call_, own_, tile.h, tile.rows.first()) * (kDqBytes / 4) +
                        number_ * (kDqPartBytes / 4) + consumer_thread() % kWarpgroup * 4;
    begin_turn(number_);
#pragma unroll
    for (int pair = 0; pair < kKeyShare / 8; ++pair) {
      add_floats_4(sums + pair * (kDqPairBytes / 4),
                   {dq[0][2 * pair], dq[0][2 * pair + 1], dq[1][2 * pair], dq[1][2 * pair + 1]});
    }
    end_turn(number_);
  }

  const int key_panel_;  // the first of its share
  const int value_panel_;
};

template <int kPart>
using WideConsumerOf = WideConsumer<key_share(kPart), value_share(kPart)>;

TW_INLINE void consume(const HopperBackwardArguments& arguments, const BackwardMaps& maps,
                       const SnippetArguments& call, const GradientSums& sums, const Shared& shared,
                       const OwnColumns& own, int number) {
  if constexpr (key_share(0) == key_share(1) && value_share(0) == value_share(1)) {
    WideConsumerOf<0>(arguments, call, sums, shared, own, number).run(maps);
  } else if (number == 0) {
    WideConsumerOf<0>(arguments, call, sums, shared, own, 0).run(maps);
  } else {
    WideConsumerOf<1>(arguments, call, sums, shared, own, 1).run(maps);
  }
}

}  // namespace tw_kernel
