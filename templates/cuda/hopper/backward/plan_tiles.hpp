#pragma once

#include "abi/cuda_backward.hpp"
#include "abi/cuda_packed_backward.hpp"
#include "abi/plan.hpp"
#include "abi/tile_map.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"

// For a plan: which columns blocks own, and where tiles of rows of q lie. A thread for each of them looks at all
// sequences.

namespace tw_kernel {

using tilewright::abi::PlannedSequence;
using tilewright::abi::cuda::PlannedColumns;
using tilewright::abi::cuda::PlannedRowTile;
using tilewright::abi::cuda::TilePlanArguments;

// Sequences without rows of q have none: their columns' gradients are zeros (planned_row_tiles.hpp).
TW_INLINE int column_tiles_of(const PlannedSequence& sequence) {
  return sequence.q_len > 0 ? (sequence.kv_len + kQTile - 1) / kQTile : 0;
}

// Columns that come first: of the group before, and in a group those that meet most rows. Under a mask these are taken
// to be those with most columns after them, as under a causal one.
struct ColumnRank {
  int group;
  int cost;
  int sequence;

  __forceinline__ int before(const TilePlanArguments& plan, const PlannedSequence& other, int b) const {
    const int tiles = column_tiles_of(other), of_group = other.q_begin / plan.q_rows_of_group;
    if (of_group != group) return of_group < group ? tiles : 0;
    if (!kMasked) return other.q_len > cost || (other.q_len == cost && b < sequence) ? tiles : 0;
    return max(tiles - cost, 0) + (b < sequence && tiles >= cost ? 1 : 0);
  }
};

TW_INLINE void plan_columns(const TilePlanArguments& plan, int number) {
  int before = 0, own = -1, own_first = 0;
#pragma unroll 4
  for (int b = 0; b < plan.batch; ++b) {
    const int tiles = column_tiles_of(plan.sequences[b]);
    if (number >= before && number < before + tiles) own = b, own_first = number - before;
    before += tiles;
  }
  PlannedColumns found = {};
  found.sequence = own;
  int place = number;
  if (own >= 0) {
    const PlannedSequence& sequence = plan.sequences[own];
    found.rows = sequence;
    found.first = own_first * kQTile;
    found.tile_row = sequence.tile_row;
    found.first_tile = tilewright::abi::row_of_sequence(sequence.q_begin, own, kKvTile);
    const int tiles = column_tiles_of(sequence);
    const ColumnRank rank = {sequence.q_begin / plan.q_rows_of_group, kMasked ? tiles - own_first : sequence.q_len,
                             own};
    place = kMasked ? 0 : own_first;
#pragma unroll 4
    for (int b = 0; b < plan.batch; ++b) place += rank.before(plan, plan.sequences[b], b);
  }
  // More than there is room for, where sequences share rows: each thread then has its own place.
  plan.columns[before > plan.column_tiles ? number : place] = found;
}

TW_INLINE void plan_rows(const TilePlanArguments& plan, int number) {
  PlannedRowTile found = {0, 0};
#pragma unroll 4
  for (int b = 0; b < plan.batch; ++b) {
    const PlannedSequence& sequence = plan.sequences[b];
    const int row = (number - tilewright::abi::row_of_sequence(sequence.q_begin, b, kKvTile)) * kKvTile;
    if (row < 0 || row >= sequence.q_len) continue;
    found = {sequence.q_begin + row, min(kKvTile, sequence.q_len - row)};
  }
  plan.rows[number] = found;
}

TW_INLINE void find_shared_rows(const TilePlanArguments& plan, int own) {
  const PlannedSequence& sequence = plan.sequences[own];
  if (column_tiles_of(sequence) == 0) return;
  bool shares = false;
#pragma unroll 4
  for (int b = 0; b < own; ++b) {
    const PlannedSequence& other = plan.sequences[b];
    shares = shares || (column_tiles_of(other) > 0 && other.kv_begin < sequence.kv_begin + sequence.kv_len &&
                        sequence.kv_begin < other.kv_begin + other.kv_len);
  }
  if (shares) *plan.shares_rows = 1;
}

TW_INLINE void plan_tiles(const TilePlanArguments& plan) {
  int number = static_cast<int>(blockIdx.x * tilewright::abi::cuda::kPlainThreads + threadIdx.x);
  if (number < plan.column_tiles) return plan_columns(plan, number);
  number -= plan.column_tiles;
  if (number < plan.row_tiles) return plan_rows(plan, number);
  number -= plan.row_tiles;
  if (number < plan.batch && plan.shares_rows != nullptr) find_shared_rows(plan, number);
}

}  // namespace tw_kernel
