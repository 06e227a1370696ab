#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/plan.hpp"
#include "abi/tile_map.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"

// The states of 32 neighbouring tiles of one row, by a warp, from lists over positions: lanes look for
// the row's first entry among these tiles together, and read a few entries each from there on.

namespace tw_kernel {

using tilewright::abi::kTilesOfSpan;
using tilewright::abi::TiledSequence;
using tilewright::abi::TileSpan;
using tilewright::abi::cuda::BlockMaskArguments;

// The bit of one entry among 32 tiles from `first` on.
TW_INLINE unsigned bit_of_entry(const int* indices, long long at, long long end, int first) {
  if (at >= end) return 0;
  const int tile = __ldg(indices + at) - first;
  return tile >= 0 && tile < kTilesOfSpan ? 1u << tile : 0;
}

// Bits of the tiles that a row of a list names, of 32 from `first` on; the same in all lanes.
// offsets: at the row; its entries rise.
TW_INLINE unsigned listed_tiles(const long long* offsets, const int* indices, int first) {
  const int lane = threadIdx.x % 32;
  long long begin = __ldg(offsets);
  const long long end_of_row = __ldg(offsets + 1);
  // The first entry that is not less than `first` is one of begin .. end, or there is none.
  long long end = end_of_row;
#pragma unroll 1
  while (end - begin > 32) {
    const long long step = (end - begin + 31) / 32;
    const long long at = begin + lane * step;
    const int less = __popc(__ballot_sync(~0u, at < end && __ldg(indices + at) < first));
    end = min(end, begin + less * step);
    if (less > 0) begin += (less - 1) * step + 1;
  }
  unsigned tiles = bit_of_entry(indices, begin + lane, end_of_row, first) |
                   bit_of_entry(indices, begin + 32 + lane, end_of_row, first);
#pragma unroll 1
  for (int distance = 16; distance > 0; distance /= 2) {
    tiles |= __shfl_xor_sync(~0u, tiles, distance);
  }
  return tiles;
}

// Returns the same in all lanes.
TW_INLINE TileSpan listed_span(const BlockMaskArguments& lists, const TiledSequence& sequence, int h,
                               int q_block, int span) {
  const int row = tilewright::abi::position_block(sequence, sequence.lead, q_block, kBlockQ);
  const int first = span * kTilesOfSpan;
  const int tiles = (sequence.kv_len + kBlockKv - 1) / kBlockKv - first;  // at least 1
  if (row < 0 || row >= lists.q_blocks) return {0, 0};
  const unsigned all = ~0u >> max(kTilesOfSpan - tiles, 0);
  const long long at = static_cast<long long>(lists.heads == 1 ? 0 : h) * lists.q_blocks + row;
  const unsigned partial = listed_tiles(lists.row_offsets + at, lists.indices, first) & all;
  const unsigned full = listed_tiles(lists.full_row_offsets + at, lists.full_indices, first) & all;
  return {partial | full, partial};
}

}  // namespace tw_kernel
