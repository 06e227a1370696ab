#pragma once

#include "abi/cuda_packed_backward.hpp"
#include "cuda/attention/head_groups.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/sequence.hpp"

// The columns that a block owns in a packed call: of one sequence, as the plan says.

namespace tw_kernel {

using tilewright::abi::SnippetArguments;
using tilewright::abi::cuda::BackwardMaps;
using HopperBackwardArguments = tilewright::abi::cuda::PackedHopperBackwardArguments;

// What all threads of a block read of them: the accumulators leave no registers for it.
using SharedColumns = tilewright::abi::cuda::PlannedColumns;

struct OwnColumns {
  int b;
  int h_kv;
  int first;
  const SharedColumns* shared;

  __forceinline__ bool exists() const { return b >= 0; }
  __forceinline__ PlacedSequence sequence() const {
    PlacedSequence placed;
    placed.rows = shared->rows;
    placed.end_of_rows = shared->rows.q_len;
    placed.begin_in_block = 0;
    return placed;
  }
};

// Whether the portable kernels compute in place of these.
TW_INLINE bool leaves_to_portable(const HopperBackwardArguments& arguments) {
  return arguments.shares_rows != nullptr && *arguments.shares_rows != 0;
}

// Within a group of heads columns come in the plan's order.
TW_INLINE PlaceInGroups planned_place(const HopperBackwardArguments& arguments, const SnippetArguments& call,
                                      int number) {
  return place_in_groups(number, arguments.kv_tiles, arguments.heads_in_group, arguments.whole_groups,
                         call.num_kv_heads);
}

// By one warp, before all threads meet.
TW_INLINE void share_own_columns(const HopperBackwardArguments& arguments, const SnippetArguments& call,
                                 int number, SharedColumns& shared) {
  if (threadIdx.x != 32) return;
  shared = arguments.planned[planned_place(arguments, call, number).item];
  if (leaves_to_portable(arguments)) shared.sequence = -1;
}

TW_INLINE OwnColumns find_own_columns(const HopperBackwardArguments& arguments, const SnippetArguments& call,
                                      int number, const SharedColumns& shared) {
  return {shared.sequence, planned_place(arguments, call, number).head, shared.first, &shared};
}

// A tile's number, counted over all heads: facts and sums of dQ lie in this order.
TW_INLINE long long number_of_tile(const HopperBackwardArguments& arguments, const SnippetArguments&,
                                   const OwnColumns& own, int h, int first_row) {
  return static_cast<long long>(h) * arguments.q_tiles + own.shared->first_tile + first_row / kKvTile;
}

}  // namespace tw_kernel
