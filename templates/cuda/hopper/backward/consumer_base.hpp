#pragma once

#include "abi/cuda_hopper_backward.hpp"
#include "cuda/backward/element_inputs.hpp"
#include "cuda/backward/elements.hpp"
#include "cuda/backward/passing_tile.hpp"
#include "cuda/hopper/backward/elements.hpp"
#include "cuda/hopper/backward/gather.hpp"
#include "cuda/hopper/backward/layout.hpp"
#include "cuda/hopper/backward/pipeline.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/unknown_zero.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/difference_values.hpp"
#include "kernel/hopper_backward_columns.hpp"
#include "kernel/hopper_backward_tile.hpp"
#include "kernel/sequence.hpp"

// What warpgroups that compute have in common, whether they share a block's columns or its head dimension.

namespace tw_kernel {

// Zeros that the compiler does not know to be such: it would set a constant between products that run.
template <int kSums>
TW_INLINE void clear_sums(float (&sums)[kRows][kSums]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kSums; ++j) sums[i][j] = unknown_zero();
  }
}

class ConsumerBase {
 protected:
  __forceinline__ ConsumerBase(const HopperBackwardArguments& arguments, const SnippetArguments& call,
                               const GradientSums& sums, const Shared& shared, const OwnColumns& own, int number)
      : arguments_(arguments),
        call_(call),
        shared_(shared),
        own_(own),
        number_(number),
        gradient_address_(gradient_address(shared, number)),
        differences_(shared.differences()),
        gathered_(sums, shared),
        loads_in_bounds_(!kHasLinearLoads || all_load_in_bounds()) {}

  // Every tile of q that the block's columns meet, head by head. compute: takes the PassingTile
  template <typename Compute>
  __forceinline__ void compute_all(const Compute& compute) {
    PassingTile tile = next_tile();
    if (!tile.rows.exists()) {
      // dK and dV, which are 0, leave by way of the places where K and V arrive.
      wait(shared_address(&shared_.control->do_full[0]), 0, "V", 0);
      return;
    }
#pragma unroll 1
    do {
      compute(tile);
      const int h = tile.h;
      tile = next_tile();
      if (kGathers && (!tile.rows.exists() || tile.h != h)) gathered_.end_head(inputs_of(h));
    } while (tile.rows.exists());
  }

  // Its Q has arrived.
  __forceinline__ PassingTile next_tile() const {
    wait(shared_address(&shared_.control->q_full[place_.stage]), place_.parity, "Q, stage", place_.stage);
    return shared_.control->plan[place_.plan];
  }

  // True too if score_mod's loads may be out of bounds: tiles for which this is false load without clamping.
  __forceinline__ bool drops_some(const KvTile& rows) const {
    const PlacedSequence sequence = own_.sequence();
    return !loads_in_bounds_ || drops_elements(rows) || own_.first + kQTile > sequence.kv_len(call_) ||
           (kHasScoreMod && rows.first() + kKvTile > sequence.q_len(call_));
  }

  __forceinline__ ElementInputs inputs_of(int h) const {
    const PlacedSequence sequence = own_.sequence();
    return {&call_, sequence,  sequence.state(call_),
            own_.b, h,         own_.h_kv,
            first_own(), score_factor(arguments_.scale)};
  }

  // What score_mod takes by the difference of indices, in the tile that begins with this row.
  __forceinline__ void find_differences(const ElementInputs& inputs, int first_row) const {
    const int own_15 = inputs.first_own + static_cast<int>(consumer_thread()) / 32 * 16 + 15 + inputs.kv_offset();
    differences_.find([&](int place) {
      return tw_snippet::tw_difference_value(inputs.state, {}, inputs.b, inputs.h, inputs.h_kv,
                                             first_row + place + inputs.q_offset(), own_15);
    });
  }

  // Columns past kv_len take no part: their K is 0, but e^-lse may be infinite.
  __forceinline__ KeptElements find_own_kept_elements(const ElementInputs& inputs, const KvTile& tile) const {
    KeptElements kept = find_kept_elements<false>(inputs, tile, inputs.q_len());
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (first_own() + row_of(i) >= inputs.kv_len()) kept.word[i] = 0;
    }
    return kept;
  }

  const HopperBackwardArguments& arguments_;
  const SnippetArguments& call_;
  const Shared shared_;
  const OwnColumns own_;
  const int number_;
  const unsigned gradient_address_;
  TilePlace place_;
  int gradient_stage_ = 0;
  const DifferenceValues differences_;
  GatheredTerms gathered_;
  const bool loads_in_bounds_;  // of score_mod, for all rows and the block's columns that exist

 private:
  // Indices are sums, also of h: they are least and greatest at the first and the last head.
  __forceinline__ bool all_load_in_bounds() const {
    const PlacedSequence sequence = own_.sequence();
    const int heads = call_.num_q_heads / call_.num_kv_heads, first_head = own_.h_kv * heads;
    const int last_column = min(own_.first + kQTile, sequence.kv_len(call_)) - 1;
    const long long row = sequence.q_offset(call_), column = sequence.kv_offset(call_);
    bool in_bounds = true;
    for (int h : {first_head, first_head + heads - 1}) {
      in_bounds = in_bounds && tw_snippet::tw_loads_in_bounds(sequence.state(call_), own_.b, h, own_.h_kv, row,
                                                              row + sequence.q_len(call_) - 1, column + own_.first,
                                                              column + last_column);
    }
    return in_bounds;
  }

  // Columns of all warpgroups follow each other, as row_of has them.
  __forceinline__ int first_own() const { return own_.first - (kIsWide ? number_ * kOwnRows : 0); }
};

}  // namespace tw_kernel
