#pragma once

#include "abi/cuda_backward.hpp"
#include "cuda/backward/element_inputs.hpp"
#include "cuda/backward/sums.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"
#include "snippet/derivative.hpp"
#include "snippet/snippets.hpp"

// Gradients of buffers and scalars. What an index depends on says how far terms are summed before memory:
// in registers over all tiles of a block, along a tile's diagonals in shared memory, or not at all.

namespace tw_kernel {

using tw_snippet::tw_Pattern;
using tw_snippet::tw_slot_count;

// A sweep over rows gathers all but what depends on the column alone.
TW_INLINE constexpr bool is_gathered(int slot, bool owns_rows) {
  return slot < tw_slot_count && (tw_snippet::tw_slots[slot].pattern == tw_Pattern::column) != owns_rows;
}
TW_INLINE constexpr int count_gathered(bool owns_rows) {
  int count = 0;
  for (int slot = 0; slot < tw_slot_count; ++slot) count += is_gathered(slot, owns_rows) ? 1 : 0;
  return count;
}
// Slots of a pattern before this one.
TW_INLINE constexpr int count_slots(tw_Pattern pattern, int end) {
  int count = 0;
  for (int slot = 0; slot < end; ++slot) count += tw_snippet::tw_slots[slot].pattern == pattern ? 1 : 0;
  return count;
}
// Those whose terms are summed along diagonals.
TW_INLINE constexpr int count_diagonals(int end) { return count_slots(tw_Pattern::difference, end); }

// A tile's terms in shared memory; 8 rows of a warp's store meet in two of a bank at most.
constexpr int kTermPitch = kKvTile + 8;
constexpr int kTermBytes = kQTile * kTermPitch * 4;

template <bool kOwnsRows>
class Gathered {
 public:
  static constexpr int kCount = count_gathered(kOwnsRows);
  using Sums = tilewright::abi::cuda::SumsArguments<kGradientCount>;

  // terms: shared memory, kTermBytes for each slot with diagonals
  __forceinline__ Gathered(const Sums& sums, unsigned terms) : sums_(sums), terms_(terms) {
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) own_[slot][i] = 0.0f;
      all_[slot] = 0.0f;
    }
  }

  // Element (i, j) of a tile. x: its scaled score; dy: the gradient of its modified score.
  __forceinline__ void add(const ElementInputs& inputs, int i, int j, float x, float dy,
                           tw_snippet::tw_RowIndex q_idx, tw_snippet::tw_ColumnIndex kv_idx) {
    float by[kSlots];
    tw_snippet::tw_differentiate_by_names(inputs.state, x, inputs.b, inputs.h, inputs.h_kv, q_idx, kv_idx,
                                          by);
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      by[slot] = dy == 0.0f || by[slot] == 0.0f ? 0.0f : dy * by[slot];
    }
    add_slots<0>(inputs, i, j, x, by, q_idx, kv_idx);
  }

  // To be called by all threads, once a tile's terms are there.
  __forceinline__ void end_tile(const ElementInputs& inputs, int first_passing) {
    if (!kOwnsRows || count_diagonals(tw_slot_count) == 0) return;
    __syncthreads();
    sum_diagonals<0>(inputs, first_passing);
  }

  // own_length: rows of the call, of which the block owns some
  __forceinline__ void end_block(const ElementInputs& inputs, int own_length) const {
    end_slots<0>(inputs, own_length);
  }

 private:
  static constexpr int kSlots = tw_slot_count > 0 ? tw_slot_count : 1;

  template <int kSlot>
  static __forceinline__ long long cell(const ElementInputs& inputs, float x, int q_idx, int kv_idx) {
    return tw_snippet::tw_cell_of<kSlot>(inputs.state, x, inputs.b, inputs.h, inputs.h_kv, q_idx, kv_idx);
  }

  template <int kSlot>
  __forceinline__ void add_slots(const ElementInputs& inputs, int i, int j, float x,
                                 const float (&terms)[kSlots], int q_idx, int kv_idx) {
    if constexpr (kSlot < tw_slot_count) {
      constexpr tw_Pattern pattern = tw_snippet::tw_slots[kSlot].pattern;
      const float term = terms[kSlot];
      if constexpr (!is_gathered(kSlot, kOwnsRows)) {
      } else if constexpr (pattern == tw_Pattern::head) {
        all_[kSlot] += term;
      } else if constexpr (pattern == tw_Pattern::row || pattern == tw_Pattern::column) {
        own_[kSlot][i] += term;
      } else if constexpr (pattern == tw_Pattern::difference) {
        const int column = column_of(0) + column_offset(j);
        store_shared(terms_of<kSlot>() +
                         ((row_of(0) + row_offset(i)) * kTermPitch + column) * 4, term);
      } else if (term != 0.0f) {
        add_to_sum(sums_.of[tw_snippet::tw_slots[kSlot].gradient], cell<kSlot>(inputs, x, q_idx, kv_idx), term);
      }
      add_slots<kSlot + 1>(inputs, i, j, x, terms, q_idx, kv_idx);
    }
  }

  template <int kSlot>
  __forceinline__ unsigned terms_of() const {
    return terms_ + count_diagonals(kSlot) * kTermBytes;
  }

  // A thread sums the elements of a diagonal, whose indices have one difference.
  template <int kSlot>
  __forceinline__ void sum_diagonals(const ElementInputs& inputs, int first_passing) const {
    if constexpr (kSlot < tw_slot_count) {
      if constexpr (tw_snippet::tw_slots[kSlot].pattern == tw_Pattern::difference) {
#pragma unroll 1
        for (int id = threadIdx.x; id < kQTile + kKvTile - 1; id += kThreads) {
          const int difference = id - (kQTile - 1);  // column - row
          const int first = max(0, -difference), end = min(kQTile, kKvTile - difference);
          float sum = 0.0f;
#pragma unroll 4
          for (int row = first; row < end; ++row) {
            sum += load_shared(terms_of<kSlot>() + (row * kTermPitch + row + difference) * 4);
          }
          if (sum == 0.0f) continue;
          const int q_idx = inputs.first_own + first + inputs.q_offset();
          const int kv_idx = first_passing + first + difference + inputs.kv_offset();
          add_to_sum(sums_.of[tw_snippet::tw_slots[kSlot].gradient], cell<kSlot>(inputs, 0.0f, q_idx, kv_idx), sum);
        }
      }
      sum_diagonals<kSlot + 1>(inputs, first_passing);
    }
  }

  template <int kSlot>
  __forceinline__ void end_slots(const ElementInputs& inputs, int own_length) const {
    if constexpr (kSlot < tw_slot_count) {
      constexpr tw_Pattern pattern = tw_snippet::tw_slots[kSlot].pattern;
      if constexpr (!is_gathered(kSlot, kOwnsRows)) {
      } else if constexpr (pattern == tw_Pattern::head) {
        float sum = all_[kSlot];
#pragma unroll
        for (int i = 1; i < 32; i *= 2) sum += __shfl_xor_sync(~0u, sum, i);
        if (threadIdx.x % 32 == 0 && sum != 0.0f) {
          add_to_sum(sums_.of[tw_snippet::tw_slots[kSlot].gradient], cell<kSlot>(inputs, 0.0f, 0, 0), sum);
        }
      } else if constexpr (pattern == tw_Pattern::row || pattern == tw_Pattern::column) {
#pragma unroll
        for (int i = 0; i < kRows; ++i) end_row<kSlot>(inputs, i, own_length);
      }
      end_slots<kSlot + 1>(inputs, own_length);
    }
  }

  template <int kSlot>
  __forceinline__ void end_row(const ElementInputs& inputs, int i, int own_length) const {
    const float sum = reduce_row_sum(own_[kSlot][i]);
    const int own = inputs.first_own + row_of(i);
    if (column_of(0) != 0 || own >= own_length || sum == 0.0f) return;
    const int q_idx = kOwnsRows ? own + inputs.q_offset() : 0;
    const int kv_idx = kOwnsRows ? 0 : own + inputs.kv_offset();
    add_to_sum(sums_.of[tw_snippet::tw_slots[kSlot].gradient], cell<kSlot>(inputs, 0.0f, q_idx, kv_idx), sum);
  }

  const Sums& sums_;
  unsigned terms_;
  float all_[kSlots];         // over all of a thread's elements
  float own_[kSlots][kRows];  // over those of each of its rows
};

}  // namespace tw_kernel
