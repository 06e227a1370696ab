#pragma once

#include "abi/cuda_backward.hpp"
#include "cuda/backward/gather.hpp"
#include "cuda/backward/element_inputs.hpp"
#include "cuda/hopper/backward/diagonals.hpp"
#include "cuda/hopper/backward/layout.hpp"
#include "cuda/hopper/backward/pipeline.hpp"
#include "cuda/hopper/backward/waiting_sum.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/add_float.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/ptx/unknown_zero.hpp"
#include "kernel/configuration.hpp"
#include "snippet/derivative.hpp"

// Gradients of buffers and scalars, of a score_mod whose derivative by the score is 1, so that dX is dY, and
// whose derivatives by what it reads do not depend on the score. Terms are summed as far as an index
// allows before memory: over a tile in registers, over a head's tiles and over a
// tile's columns by shared memory, and so along its diagonals.

namespace tw_kernel {

using GradientSums = tilewright::abi::cuda::SumsArguments<kGradientCount>;

constexpr bool kGathers = tw_slot_count > 0;

// Slots before this one whose terms are summed over a head's tiles, and over a tile's columns.
TW_INLINE constexpr bool is_own_sum(tw_Pattern pattern) {
  return pattern == tw_Pattern::head || pattern == tw_Pattern::column;
}
TW_INLINE constexpr int count_own_sums(int end) {
  return count_slots(tw_Pattern::head, end) + count_slots(tw_Pattern::column, end);
}
TW_INLINE constexpr int count_rows(int end) { return count_slots(tw_Pattern::row, end); }
static_assert(count_own_sums(tw_slot_count) == kOwnSums && count_rows(tw_slot_count) == kRowReads &&
                  count_diagonals(tw_slot_count) == kDiagonalReads,
              "shared memory has places for them");

// A thread sums all terms on its own until a head's tiles end.
constexpr bool kSumsAreOwn = kGathers && kOwnSums == tw_slot_count;
constexpr bool kSumsColumns = count_slots(tw_Pattern::column, tw_slot_count) > 0;

static_assert(!kIsWide || kRowReads + kDiagonalReads == 0, "warpgroups have different rows of q there");

class GatheredTerms {
 public:
  __forceinline__ GatheredTerms(const GradientSums& sums, const Shared& shared)
      : sums_(sums),
        diagonals_(shared.diagonals()),
        own_sums_(shared.own_sums() + consumer_thread() * 4),
        row_sums_(shared.row_sums()) {
    begin_head();
    if (kDiagonalReads > 0) diagonals_.clear();
  }

  // stage: alternates from tile to tile
  __forceinline__ void begin_tile(const ElementInputs& inputs, int first_row, int stage) {
    stage_ = stage;
    find_shared_cell<0>(inputs, first_row);
  }

  // Terms of a group of 16 rows of q. w: weights, 0 where nothing is kept; dy: the gradients of scores
  __forceinline__ void add(const ElementInputs& inputs, const ElementIndices<false>& at, int group,
                           const float (&w)[kRows][kColumns], const float (&dy)[kRows][4]) {
    add_slots<0>(inputs, at, group, w, dy);
  }

  // Rows of q whose terms lie along diagonals are complete: those from this row on.
  __forceinline__ void end_rows(const ElementInputs& inputs, int first_row) {
    end_diagonals<0>(inputs, first_row);
  }

  // To be called after a barrier of all threads that compute.
  // first_row: of the tile
  __forceinline__ void end_tile(const ElementInputs& inputs, int first_row) {
    end_tile_rows<0>(inputs, first_row);
    end_rows(inputs, first_row + kKvTile - kDiagonalRows);
  }

  // A head's last tile was added.
  __forceinline__ void end_head(const ElementInputs& inputs) {
    end_slots<0>(inputs);
    begin_head();
  }

 private:
  static constexpr int kSlots = tw_slot_count > 0 ? tw_slot_count : 1;

  __forceinline__ void begin_head() {
#pragma unroll
    for (int i = 0; i < kOwnSums * kRows; ++i) store_shared(own_sums_ + i * kOwnSumBytes, 0.0f);
  }

  template <int kSlot>
  __forceinline__ void add_to_memory(bool adds, const ElementInputs& inputs, int q_idx, int kv_idx,
                                     float sum) const {
    add_float_if(adds && sum != 0.0f, sums_of<kSlot>() + cell_of<kSlot>(inputs, q_idx, kv_idx), sum);
  }

  template <int kSlot>
  __forceinline__ float* sums_of() const {
    return sums_.of[tw_snippet::tw_slots[kSlot].gradient].sums;
  }

  template <int kSlot>
  static __forceinline__ long long cell_of(const ElementInputs& inputs, int q_idx, int kv_idx) {
    return tw_snippet::tw_cell_of<kSlot>(inputs.state, 0.0f, inputs.b, inputs.h, inputs.h_kv, q_idx, kv_idx);
  }

  template <int kSlot>
  __forceinline__ void add_slots(const ElementInputs& inputs, const ElementIndices<false>& at, int group,
                                 const float (&w)[kRows][kColumns], const float (&dy)[kRows][4]) {
    if constexpr (kSlot < tw_slot_count) {
      constexpr tw_Pattern pattern = tw_snippet::tw_slots[kSlot].pattern;
      float terms[kRows][4];
      find_terms<kSlot>(inputs, at, group, w, dy, terms);
      if constexpr (is_own_sum(pattern)) {
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          const float sum = (terms[i][0] + terms[i][1]) + (terms[i][2] + terms[i][3]);
          of_tile_[kSlot][i] = group == 0 ? sum : of_tile_[kSlot][i] + sum;
          if (group == kColumnGroups - 1) {
            store_shared(own_sum<kSlot>(i), load_shared(own_sum<kSlot>(i)) + of_tile_[kSlot][i]);
          }
        }
      } else if constexpr (pattern == tw_Pattern::row) {
        add_rows<kSlot>(group, terms);
      } else if constexpr (pattern == tw_Pattern::difference) {
        diagonals_.add(!kMayShareCell<kSlot> || !shares_cell_, group % kDiagonalGroups, terms);
      } else {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const int j = group * 4 + k;
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
            // The compiler would compute many cells before it adds, for which there are no registers.
            const int q_idx = as_unknown(at.q_idx(i, j)), kv_idx = as_unknown(at.kv_idx(i, j));
            add_to_memory<kSlot>(w[i][j] != 0.0f, inputs, q_idx, kv_idx, terms[i][k]);
          }
        }
      }
      add_slots<kSlot + 1>(inputs, at, group, w, dy);
    }
  }

  template <int kSlot>
  static __forceinline__ void find_terms(const ElementInputs& inputs, const ElementIndices<false>& at,
                                         int group, const float (&w)[kRows][kColumns],
                                         const float (&dy)[kRows][4], float (&terms)[kRows][4]) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int j = group * 4 + k;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        float by[kSlots];
        tw_snippet::tw_differentiate_by_names(inputs.state, 0.0f, inputs.b, inputs.h, inputs.h_kv,
                                              at.row_index(i, j), at.column_index(i, j), by);
        constexpr tw_snippet::tw_Slot kHow = tw_snippet::tw_slots[kSlot];
        // dY may be NaN, which a branch that was not taken must not add.
        const bool counts = (kHow.is_finite || w[i][j] != 0.0f) && (!kHow.is_branched || by[kSlot] != 0.0f);
        terms[i][k] = counts ? dy[i][k] * by[kSlot] : 0.0f;
      }
    }
  }

  // Over the warp's 16 columns of the call: 8 lanes share a row of q, and the sums of four rows are left
  // to two lanes each.
  template <int kSlot>
  __forceinline__ void add_rows(int group, const float (&terms)[kRows][4]) const {
    const bool is_upper = lane() / 16 != 0, is_odd = lane() / 8 % 2 != 0;
    float sums[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[k] = terms[0][k] + terms[1][k];
    float pair[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const float given = __shfl_xor_sync(~0u, is_upper ? sums[k] : sums[k + 2], 16);
      pair[k] = (is_upper ? sums[k + 2] : sums[k]) + given;
    }
    float sum = (is_odd ? pair[1] : pair[0]) + __shfl_xor_sync(~0u, is_odd ? pair[0] : pair[1], 8);
    sum += __shfl_xor_sync(~0u, sum, 4);
    const int row = group * 16 + column_of(0) + (is_upper ? 8 : 0) + (is_odd ? 1 : 0);
    store_shared(row_sums<kSlot>() + (consumer_thread() / 32 * kKvTile + row) * 4, sum);
  }

  // A thread adds what some of the warps found of one row.
  template <int kSlot>
  __forceinline__ void end_tile_rows(const ElementInputs& inputs, int first_row) const {
    if constexpr (kSlot < tw_slot_count) {
      if constexpr (tw_snippet::tw_slots[kSlot].pattern == tw_Pattern::row) {
        constexpr int kWarps = kConsumers * 4;
        constexpr int kParts = kConsumers * kWarpgroup / kKvTile;
        const int column = static_cast<int>(consumer_thread()) % kKvTile;
        const int part = static_cast<int>(consumer_thread()) / kKvTile;
        float sum = 0.0f;
#pragma unroll
        for (int warp = 0; warp < kWarps / kParts; ++warp) {
          sum += load_shared(row_sums<kSlot>() + ((part * (kWarps / kParts) + warp) * kKvTile + column) * 4);
        }
        const int row = first_row + column;
        add_to_memory<kSlot>(row < inputs.q_len(), inputs, row + inputs.q_offset(), 0, sum);
      }
      end_tile_rows<kSlot + 1>(inputs, first_row);
    }
  }

  // Whether two differences may have one cell, as those beyond a clamp have.
  template <int kSlot>
  static constexpr bool kMayShareCell =
      tw_snippet::tw_slots[kSlot].pattern == tw_Pattern::difference &&
      !tw_snippet::tw_slots[kSlot].has_cell_for_each_difference;

  // A vote on all differences of the warp's elements of a tile.
  template <int kSlot>
  __forceinline__ void find_shared_cell(const ElementInputs& inputs, int first_row) {
    if constexpr (kSlot < tw_slot_count) {
      if constexpr (kMayShareCell<kSlot>) {
        constexpr int kTileDifferences = 16 + kKvTile - 1;
        const int last_q_idx = first_row + kKvTile - 1 + inputs.q_offset();
        const int kv_idx = first_column(inputs) + inputs.kv_offset();
        const long long first = cell_of<kSlot>(inputs, last_q_idx, kv_idx);
        bool is_same = true;
#pragma unroll
        for (int i = 0; i < (kTileDifferences + 31) / 32; ++i) {
          const int place = min(i * 32 + static_cast<int>(lane()), kTileDifferences - 1);
          is_same = is_same && cell_of<kSlot>(inputs, last_q_idx, kv_idx + place) == first;
        }
        shares_cell_ = __all_sync(~0u, is_same) != 0;
      }
      find_shared_cell<kSlot + 1>(inputs, first_row);
    }
  }

  template <int kSlot>
  __forceinline__ void end_diagonals(const ElementInputs& inputs, int first_row) {
    if constexpr (kSlot < tw_slot_count) {
      if constexpr (tw_snippet::tw_slots[kSlot].pattern == tw_Pattern::difference) {
        if (kMayShareCell<kSlot> && shares_cell_) {
          add_total<kSlot>(inputs, first_row);
        } else {
          add_sums<kSlot>(inputs, first_row);
        }
      }
      end_diagonals<kSlot + 1>(inputs, first_row);
    }
  }

  template <int kSlot>
  __forceinline__ void add_total(const ElementInputs& inputs, int first_row) {
    const int q_idx = first_row + inputs.q_offset(), kv_idx = first_column(inputs) + inputs.kv_offset();
    waiting_.add_to_one(diagonals_.place_of_lane(), sums_of<kSlot>(), cell_of<kSlot>(inputs, q_idx, kv_idx),
                        diagonals_.total());
  }

  template <int kSlot>
  __forceinline__ void add_sums(const ElementInputs& inputs, int first_row) {
    constexpr bool kHasOwnCells = tw_snippet::tw_slots[kSlot].has_cell_for_each_difference;
    // Each lane then has its own cell. Tiles of 128 rows with a mask spill with it.
    constexpr bool kAddsByLane = kHasOwnCells && !(kHasMaskMod && kKvTile == 128);
    int first = first_column(inputs);
    if (kAddsByLane) first = as_unknown(first);  // as in add_slots
    float sums[kDiagonalRounds];
    diagonals_.sum(sums);
    long long cells[kDiagonalRounds];
#pragma unroll
    for (int i = 0; i < kDiagonalRounds; ++i) {
      const int lane_of_all = i * 32 + static_cast<int>(lane());
      const int place = min(lane_of_all, kDifferences - 1);
      const int difference = place + kLeastDifference;
      // The least of the elements that have it.
      const int row = first_row + max(-difference, 0), column = first + max(difference, 0);
      const bool exists = place == lane_of_all && row < inputs.q_len() && column < inputs.kv_len();
      const int q_idx = row + inputs.q_offset(), kv_idx = column + inputs.kv_offset();
      if constexpr (kAddsByLane) {
        add_to_memory<kSlot>(exists, inputs, q_idx, kv_idx, sums[i]);
      } else {
        cells[i] = cell_of<kSlot>(inputs, q_idx, kv_idx);
        sums[i] = exists ? sums[i] : 0.0f;
      }
    }
    if constexpr (!kAddsByLane) waiting_.add(diagonals_.place_of_lane(), sums_of<kSlot>(), cells, sums);
  }

  // Of the warp's columns of the call.
  static __forceinline__ int first_column(const ElementInputs& inputs) {
    return inputs.first_own + static_cast<int>(consumer_thread() / 32 * 16);
  }

  template <int kSlot>
  __forceinline__ void end_slots(const ElementInputs& inputs) {
    if constexpr (kSlot < tw_slot_count) {
      constexpr tw_Pattern pattern = tw_snippet::tw_slots[kSlot].pattern;
      if constexpr (pattern == tw_Pattern::head) {
        float sum = load_shared(own_sum<kSlot>(0)) + load_shared(own_sum<kSlot>(1));
#pragma unroll
        for (int i = 1; i < 32; i *= 2) sum += __shfl_xor_sync(~0u, sum, i);
        add_to_memory<kSlot>(lane() == 0, inputs, 0, 0, sum);
      } else if constexpr (pattern == tw_Pattern::column) {
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          float sum = load_shared(own_sum<kSlot>(i));
#pragma unroll
          for (int lanes = 1; lanes < 4; lanes *= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
          const int column = inputs.first_own + row_of(i);
          const bool adds = lane() % 4 == 0 && column < inputs.kv_len();
          add_to_memory<kSlot>(adds, inputs, 0, column + inputs.kv_offset(), sum);
        }
      } else if constexpr (pattern == tw_Pattern::difference) {
        waiting_.end(diagonals_.place_of_lane(), sums_of<kSlot>());
      }
      end_slots<kSlot + 1>(inputs);
    }
  }

  // Where the thread's sum over a head's tiles lies, of its i-th column of the call.
  template <int kSlot>
  __forceinline__ unsigned own_sum(int i) const {
    return own_sums_ + (count_own_sums(kSlot) * kRows + i) * kOwnSumBytes;
  }

  // [warps][rows of a tile]
  template <int kSlot>
  __forceinline__ unsigned row_sums() const {
    return row_sums_ + (count_rows(kSlot) * kGradientStages + stage_) * kRowSumsBytes;
  }

  const GradientSums& sums_;
  Diagonals diagonals_;
  WaitingSum waiting_;  // of diagonals
  unsigned own_sums_;  // of the thread
  unsigned row_sums_;
  int stage_;
  bool shares_cell_;  // the warp's elements of the tile, of the slot of the pattern difference
  float of_tile_[kSlots][kRows];  // of each of a thread's columns of the call
};

}  // namespace tw_kernel
