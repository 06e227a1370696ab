#pragma once

#include "abi/column_sequences.hpp"
#include "abi/cuda_backward.hpp"
#include "abi/cuda_hopper_backward.hpp"
#include "abi/cuda_packed_backward.hpp"
#include "abi/plan.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/backward/out_rows.hpp"
#include "cuda/hopper/backward/prepare_row.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"
#include "kernel/hopper_backward_rows.hpp"

// prepare.hpp in a packed call, where each sequence's rows begin with a tile; and zeros in rows of dk and dv that have
// no sequence.

namespace tw_kernel {

// index: of the row, counted over all tiles
TW_INLINE void prepare_planned_row(const BackwardArguments& arguments, const HopperBackwardArguments& tiles,
                                   const SnippetArguments& call, long long index, int lane) {
  const int rows = tiles.q_tiles * kKvTile;
  const int h = static_cast<int>(index / rows), in_head = static_cast<int>(index % rows), in_tile = in_head % kKvTile;
  tilewright::abi::cuda::PlannedRowTile tile = {0, 0};
  if (h < call.num_q_heads) tile = tiles.row_tiles[in_head / kKvTile];
  const int row = tile.begin + in_tile;
  prepare_row(arguments, tiles,
              {0, h, row, in_tile, static_cast<long long>(h) * call.q_len + row, tile.count > 0, in_tile < tile.count},
              index, lane);
}

TW_INLINE bool has_sequence(const HopperBackwardArguments& tiles, int row) {
  const tilewright::abi::ColumnSequences found = tiles.column_sequences[row / tiles.column_side];
#pragma unroll 1
  for (int b = found.first; b < found.end; ++b) {
    const tilewright::abi::SequenceRows& rows = tiles.sequences[b];
    if (rows.q_len > 0 && row >= rows.kv_begin && row < rows.kv_begin + rows.kv_len) return true;
  }
  return false;
}

// By a warp.
template <int kColumns>
TW_INLINE void clear_row(const TensorArgument& tensor, int h, int row, int lane) {
  KvElement* const to = head_of<KvElement>(tensor, 0, h) + row * tensor.row_stride;
  for (int column = lane * 8; column < kColumns; column += 32 * 8) {
    *reinterpret_cast<int4*>(to + column) = {0, 0, 0, 0};
  }
}

// Rows of dk and dv that have no sequence with rows of q. A lane looks at a row, and its warp clears those it finds.
// index: of the lane's row, counted over all heads
TW_INLINE void prepare_rows_of_none(const BackwardArguments& arguments, const HopperBackwardArguments& tiles,
                                    const SnippetArguments& call, long long index) {
  const int h = static_cast<int>(index / tiles.total_kv), row = static_cast<int>(index % tiles.total_kv);
  const int lane = threadIdx.x % 32;
  unsigned found = __ballot_sync(~0u, h < call.num_kv_heads && !has_sequence(tiles, row));
#pragma unroll 1
  for (; found != 0; found &= found - 1) {
    const int source = __ffs(found) - 1;
    const int its_h = __shfl_sync(~0u, h, source), its_row = __shfl_sync(~0u, row, source);
    clear_row<kHeadDim>(arguments.dk, its_h, its_row, lane);
    clear_row<kValueDim>(arguments.dv, its_h, its_row, lane);
  }
}

// Blocks for rows of k come after those for rows of q.
TW_INLINE void prepare(const BackwardArguments& arguments, const HopperBackwardArguments& tiles,
                       const SnippetArguments& call) {
  if (leaves_to_portable(tiles)) return;
  const long long facts = static_cast<long long>(tiles.q_tiles) * kKvTile * call.num_q_heads;
  const long long blocks = (facts + kPreparedRows - 1) / kPreparedRows;
  constexpr int kLanes = kLanesOfRow<kValueDim>;
  const long long block = blockIdx.x;
  if (block < blocks) {
    prepare_planned_row(arguments, tiles, call, block * kPreparedRows + threadIdx.x / kLanes, threadIdx.x % kLanes);
  } else {
    prepare_rows_of_none(arguments, tiles, call,
                         (block - blocks) * tilewright::abi::cuda::kPlainThreads + threadIdx.x);
  }
}

}  // namespace tw_kernel
