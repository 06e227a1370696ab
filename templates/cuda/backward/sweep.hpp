#pragma once

#include "abi/cuda_backward.hpp"
#include "abi/cuda_forward.hpp"
#include "cuda/attention/no_draws.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/backward/elements.hpp"
#include "cuda/backward/gather.hpp"
#include "cuda/backward/passing_tile.hpp"
#include "cuda/backward/element_inputs.hpp"
#include "cuda/constants.hpp"
#include "cuda/element.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/convert.hpp"
#include "cuda/ptx/cp_async.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/ptx/thread.hpp"
#include "kernel/backward_dropout.hpp"
#include "kernel/backward_engine.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"
#include "kernel/row_facts.hpp"

// One block's walk over the tiles that its rows meet. A block owns kQTile rows of q, and tiles of kKvTile
// columns pass by; or it owns as many columns, and tiles of rows pass by. Keys are rows of q and k, values
// rows of dO and v, so that either way
//
//   scores  = own keys * passing keys^T        products = own values * passing values^T

namespace tw_kernel {

// Shared memory: the own keys and values, stages of those that pass by with the facts of their rows, P in
// float32, terms of diagonals, and dX where it meets K.
constexpr int kOwnKeyBytes = kQTile * KeyTile::kRowBytes;
constexpr int kOwnValueBytes = kQTile * ValueTile::kRowBytes;
constexpr int kStageKeyBytes = kKvTile * KeyTile::kRowBytes;
constexpr int kStageValueBytes = kKvTile * ValueTile::kRowBytes;
constexpr int kFactBytes = kKvTile * static_cast<int>(sizeof(RowFacts));
constexpr int kStageBytes = kStageKeyBytes + kStageValueBytes + kFactBytes;
constexpr int kDxBytes = kOneSweep ? kQTile * kKvTile * 2 : 0;
constexpr int kStagesEnd = kOwnKeyBytes + kOwnValueBytes + kStages * kStageBytes;
static_assert(kStagesEnd + kPBytes + count_diagonals(tw_slot_count) * kTermBytes + kDxBytes <= kLaunchSharedBytes,
              "a launch has the tactic's shared_bytes");

class SweepMemory {
 public:
  __forceinline__ explicit SweepMemory(unsigned begin) : begin_(begin) {}
  __forceinline__ unsigned own_keys() const { return begin_; }
  __forceinline__ unsigned own_values() const { return begin_ + kOwnKeyBytes; }
  __forceinline__ unsigned keys(int stage) const {
    return begin_ + kOwnKeyBytes + kOwnValueBytes + stage * kStageBytes;
  }
  __forceinline__ unsigned values(int stage) const { return keys(stage) + kStageKeyBytes; }
  __forceinline__ unsigned facts(int stage) const { return values(stage) + kStageValueBytes; }
  __forceinline__ unsigned weights() const { return begin_ + kStagesEnd; }
  __forceinline__ unsigned terms() const { return weights() + kPBytes; }
  __forceinline__ unsigned dx() const { return terms() + count_diagonals(tw_slot_count) * kTermBytes; }

 private:
  unsigned begin_;
};

// What passes by a block: columns where it owns rows.
template <bool kOwnsRows>
struct PassingElements {
  using Key = KvElement;
  using Value = KvElement;
};
template <>
struct PassingElements<false> {
  using Key = QElement;
  using Value = OutElement;
};

// The rows of one head that pass by.
template <bool kOwnsRows>
struct PassingRows {
  using Key = typename PassingElements<kOwnsRows>::Key;
  using Value = typename PassingElements<kOwnsRows>::Value;

  const Key* keys;
  const Value* values;
  long long key_stride;
  long long value_stride;
  const RowFacts* facts;  // of the head's rows of q; null where columns pass by
  int count;

  template <typename Tile>
  __forceinline__ void load(const SweepMemory& memory, int stage, const Tile& tile) const {
    if (!tile.exists()) return;
    const int left = end_of_rows(tile, count) - tile.first();
    KeyTile::load<kKvTile>(memory.keys(stage), keys + tile.first() * key_stride, key_stride, left);
    ValueTile::load<kKvTile>(memory.values(stage), values + tile.first() * value_stride, value_stride,
                             left);
    if (!kOwnsRows) copy_facts(memory.facts(stage), facts + tile.first());
  }
};

// In place of AddedDq (added_dq.hpp) where another sweep computes dQ.
struct NoDq {
  static constexpr bool kAdds = false;
  __forceinline__ NoDq of_head(const SnippetArguments&, int, int) const { return {}; }
};

// What the loop over tiles needs now and then. It lies in shared memory, as the accumulators leave no
// registers for it.
template <bool kOwnsRows, typename Walk, typename Dq>
struct Passing : Dq {
  Walk walk;
  PassingRows<kOwnsRows> rows;
};

// dO of a row with nothing kept counts as 0, whatever it holds: in a sum over rows, 0 * NaN would be NaN.
TW_INLINE void clear_dead_rows(const SweepMemory& memory, int stage) {
  constexpr int kChunks = ValueTile::kRowBytes / 16;
#pragma unroll 1
  for (unsigned id = thread_number<kThreads>(); id < kKvTile * kChunks; id += kThreads) {
    const unsigned row = id / kChunks;
    if (load_shared(memory.facts(stage) + row * sizeof(RowFacts)) != kInfinity) continue;
    store_shared_16(memory.values(stage) + row * ValueTile::kRowBytes + id % kChunks * 16, 0, 0, 0, 0);
  }
}

// Accumulators of a block's rows.
template <typename Tile>
struct RowSums {
  float of[kRows][Tile::kSumColumns];

  __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < Tile::kSumColumns; ++j) of[i][j] = 0.0f;
    }
  }
};

// Kept elements lie where only their own thread will put dX, of its rows i (AddedDq::stage_rows).
TW_INLINE unsigned place_of_kept(const SweepMemory& memory, int i) {
  return memory.dx() + row_of(i) * kKvTile * 2 + lane() % 4 * 4;
}
TW_INLINE void put_aside(const SweepMemory& memory, const KeptElements& kept) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) store_shared(place_of_kept(memory, i), __uint_as_float(kept.word[i]));
}
TW_INLINE KeptElements take_back(const SweepMemory& memory) {
  KeptElements kept;
#pragma unroll
  for (int i = 0; i < kRows; ++i) kept.word[i] = __float_as_uint(load_shared(place_of_kept(memory, i)));
  return kept;
}

// P of a tile in s, and dX in d.
// kKeys, kValues: which sums are wanted, of dX times the passing keys, and of P times the passing values.
// A block that owns rows wants those of keys alone.
template <bool kOwnsRows, bool kKeys, bool kValues, typename Tile, typename Facts>
TW_INLINE void compute_elements(const SweepMemory& memory, int stage, const ElementInputs& inputs,
                                const Tile& tile, int passing, const Facts& facts,
                                float (&s)[kRows][kColumns], float (&d)[kRows][kColumns],
                                Gathered<kOwnsRows>& gathered) {
  constexpr bool kWantsProducts = kKeys;
  passing = end_of_rows(tile, passing);
  const bool some_dropped = drops_elements(tile) || tile.first() + kKvTile > passing;
  // In one sweep a mask_mod's code has no registers after the products, nor has what it found while they run.
  constexpr bool kFindsLate = kOneSweep && !kHasMaskMod;
  constexpr bool kPutsAside = kOneSweep && kHasMaskMod;
  KeptElements kept;
  if (!kFindsLate && some_dropped) kept = find_kept_elements<kOwnsRows>(inputs, tile, passing);
  if (kPutsAside && some_dropped) put_aside(memory, kept);
  auto draws = start_draws<kOwnsRows>(inputs, tile.first());
  if (kWantsProducts && kValues && KeyTile::kSumColumns + ValueTile::kSumColumns > 48) {
    NoDraws none;  // sums and products leave no registers for draws
    score_tile(typename KeyTile::Fragments(memory.own_keys()), memory.keys(stage), s, draws);
    score_tile(typename ValueTile::Fragments(memory.own_values()), memory.values(stage), d, none);
  } else if (kWantsProducts) {
    HalfOfDraws<false, decltype(draws)> first{draws};
    HalfOfDraws<true, decltype(draws)> second{draws};
    score_tile(typename KeyTile::Fragments(memory.own_keys()), memory.keys(stage), s, first);
    score_tile(typename ValueTile::Fragments(memory.own_values()), memory.values(stage), d, second);
  } else {
    score_tile(typename KeyTile::Fragments(memory.own_keys()), memory.keys(stage), s, draws);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) d[i][j] = 0.0f;
    }
  }
  const DroppedProducts dropped = finish_draws(inputs, draws);
  if (kFindsLate && some_dropped) kept = find_kept_elements<kOwnsRows>(inputs, tile, passing);
  if (kPutsAside && some_dropped) kept = take_back(memory);
  differentiate_tile<kOwnsRows>(inputs, tile, facts, kept, some_dropped, dropped, s, d, gathered);
}

template <bool kOwnsRows, bool kKeys, bool kValues, typename Tile, typename Facts, typename Dq>
TW_INLINE void compute_tile(const SweepMemory& memory, int stage, const ElementInputs& inputs,
                            const Tile& tile, int passing, const Facts& facts,
                            RowSums<KeyTile>& key_sums, RowSums<ValueTile>& value_sums,
                            Gathered<kOwnsRows>& gathered, const Dq& dq) {
  float s[kRows][kColumns], d[kRows][kColumns];
  compute_elements<kOwnsRows, kKeys, kValues>(memory, stage, inputs, tile, passing, facts, s, d, gathered);
  if constexpr (Dq::kAdds) {
    const auto p = make_weights(memory.weights(), s), dx = make_weights(memory.weights(), d);
    dq.stage(memory, dx);
    ValueTile::add(p, memory.values(stage), value_sums.of);
    __syncthreads();  // dX of all columns is there
    KeyTile::add(dx, memory.keys(stage), key_sums.of);
    dq.add(memory, tile.first());
    return;
  }
  if (kValues) {
    ValueTile::add(make_weights(memory.weights(), s), memory.values(stage), value_sums.of);
    __syncwarp();  // P is no longer read
  }
  if (kKeys) KeyTile::add(make_weights(memory.weights(), d), memory.keys(stage), key_sums.of);
}

// All tiles of one head.
template <bool kOwnsRows, bool kKeys, bool kValues, typename Walk, typename Dq = NoDq>
TW_INLINE void visit_tiles(const SweepMemory& memory, const ElementInputs& inputs,
                           const Walk& found_walk, const PassingRows<kOwnsRows>& found_rows,
                           const FactsOfRows& own_facts, RowSums<KeyTile>& key_sums, RowSums<ValueTile>& value_sums,
                           Gathered<kOwnsRows>& gathered, Dq found_dq = {}) {
  using Tile = typename Walk::Tile;
  __shared__ Passing<kOwnsRows, Walk, Dq> passing;
  if (threadIdx.x == 0) passing = {found_dq, found_walk, found_rows};
  __syncthreads();
  const Walk& walk = passing.walk;
  const PassingRows<kOwnsRows>& rows = passing.rows;
  const Dq& dq = passing;
  typename Walk::Cursor cursor;
  Tile tile = walk.next(cursor);
  Tile next = walk.next(cursor);
  int stage = 0;
  rows.load(memory, stage, tile);
  commit_copies();
#pragma unroll 1
  while (tile.exists()) {
    const Tile after = walk.next(cursor);
    wait_for_groups<0>();
    // The tile is visible to all, and the stage before is no longer read by any.
    if (kOwnsRows) {
      __syncthreads();
    } else if (__syncthreads_or(copied_dead_row(memory.facts(stage)))) {
      clear_dead_rows(memory, stage);
      __syncthreads();
    }
    if (kStages > 1) {
      rows.load(memory, stage ^ 1, next);
      commit_copies();
    }
    if constexpr (kOwnsRows) {
      compute_tile<kOwnsRows, kKeys, kValues>(memory, stage, inputs, tile, rows.count, own_facts,
                                              key_sums, value_sums, gathered, dq);
    } else {
      compute_tile<kOwnsRows, kKeys, kValues>(memory, stage, inputs, tile, rows.count,
                                              FactsOfColumns{memory.facts(stage)}, key_sums,
                                              value_sums, gathered, dq);
    }
    gathered.end_tile(inputs, tile.first());
    if (kStages > 1) {
      stage ^= 1;
    } else {
      __syncthreads();
      rows.load(memory, stage, next);
      commit_copies();
    }
    tile = next;
    next = after;
  }
  wait_for_groups<0>();
  __syncthreads();  // nothing of this head is read any more
}

// A thread's rows of sums as rows of a gradient.
// begin: of the tensor, the row that first_own and length are counted from
template <typename Tile, typename Element>
TW_INLINE void store_sums(const float (&sums)[kRows][Tile::kSumColumns],
                          const float (&factor)[kRows], const TensorArgument& to, int b, int h,
                          int begin, int first_own, int length) {
  Element* const head = head_of<Element>(to, b, h) + begin * to.row_stride;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int row = first_own + row_of(i);
    if (row >= length) continue;
    Element* const at = head + row * to.row_stride;
#pragma unroll
    for (int j = 0; j < Tile::kSumColumns; j += 2) {
      const int column = out_column_of(j);
      if (Tile::kColumns != Tile::kPad && column >= Tile::kColumns) continue;
      // A factor of 0 stands for a row with nothing kept, whatever its sums are.
      const float x = factor[i] == 0.0f ? 0.0f : sums[i][j] * factor[i];
      const float y = factor[i] == 0.0f ? 0.0f : sums[i][j + 1] * factor[i];
      if (kAligned) {
        store_pair(x, y, at + column);
      } else {
        from_float(x, at + column);
        if (Tile::kColumns % 2 == 0 || column + 1 < Tile::kColumns) from_float(y, at + column + 1);
      }
    }
  }
}

}  // namespace tw_kernel
