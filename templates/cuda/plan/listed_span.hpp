#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/plan.hpp"
#include "abi/tile_map.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"

// The states of 32 neighbouring tiles of one row, by a warp, from lists over positions: each lane looks
// its tile up.

namespace tw_kernel {

using tilewright::abi::kTilesOfSpan;
using tilewright::abi::PlannedSequence;
using tilewright::abi::TileSpan;
using tilewright::abi::cuda::BlockMaskArguments;

// Whether a row of a list names a kv block. offsets: at the row.
TW_INLINE bool lists_tile(const long long* offsets, const int* indices, int kv_block) {
  long long begin = offsets[0], end = offsets[1];
#pragma unroll 1
  while (begin < end) {
    const long long middle = (begin + end) / 2;
    const int found = indices[middle];
    if (found == kv_block) return true;
    if (found < kv_block) begin = middle + 1;
    else end = middle;
  }
  return false;
}

// Returns the same in all lanes.
TW_INLINE TileSpan listed_span(const BlockMaskArguments& lists, const PlannedSequence& sequence, int h,
                               int q_block, int span) {
  const int row = tilewright::abi::position_block(sequence, sequence.lead, q_block, kBlockQ);
  const int tile = span * kTilesOfSpan + static_cast<int>(threadIdx.x % 32);
  bool partial = false, full = false;
  if (row >= 0 && row < lists.q_blocks && tile < (sequence.kv_len + kBlockKv - 1) / kBlockKv) {
    const long long at = static_cast<long long>(lists.heads == 1 ? 0 : h) * lists.q_blocks + row;
    partial = lists_tile(lists.row_offsets + at, lists.indices, tile);
    full = !partial && lists_tile(lists.full_row_offsets + at, lists.full_indices, tile);
  }
  __syncwarp();
  const unsigned partial_tiles = __ballot_sync(~0u, partial);
  return {partial_tiles | __ballot_sync(~0u, full), partial_tiles};
}

}  // namespace tw_kernel
