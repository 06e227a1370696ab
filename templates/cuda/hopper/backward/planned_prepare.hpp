#pragma once

#include "abi/column_sequences.hpp"
#include "abi/cuda_backward.hpp"
#include "abi/cuda_hopper_backward.hpp"
#include "abi/cuda_packed_backward.hpp"
#include "abi/plan.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/backward/out_rows.hpp"
#include "cuda/constants.hpp"
#include "cuda/hopper/backward/clear_dq_row.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"
#include "kernel/hopper_backward_rows.hpp"

// prepare.hpp in a packed call, where each sequence's rows begin with a tile; and zeros in rows of dk and dv that have
// no sequence.

namespace tw_kernel {

constexpr int kPreparedRows = tilewright::abi::cuda::kPlainThreads / kLanesOfRow<kValueDim>;  // of a block of threads

// index: of the row among those of all tiles
TW_INLINE void prepare_row(const BackwardArguments& arguments, const HopperBackwardArguments& tiles,
                           const SnippetArguments& call, long long index, int lane) {
  constexpr int kLanes = kLanesOfRow<kValueDim>;
  const int rows = tiles.q_tiles * kKvTile;
  const int h = static_cast<int>(index / rows), in_head = static_cast<int>(index % rows), in_tile = in_head % kKvTile;
  tilewright::abi::cuda::PlannedRowTile tile = {0, 0};
  if (h < call.num_q_heads) tile = tiles.row_tiles[in_head / kKvTile];
  const int row = tile.begin + in_tile;
  const bool is_row = in_tile < tile.count;
  const long long lse_row = static_cast<long long>(h) * call.q_len + row;
  const float lse = is_row ? arguments.lse[lse_row] : -kInfinity;
  float delta = 0.0f;
  if (lse != -kInfinity) {
    delta = multiply_chunks<kValueDim>(
        head_of<const OutElement>(arguments.out, 0, h) + row * arguments.out.row_stride,
        head_of<const OutElement>(arguments.dout, 0, h) + row * arguments.dout.row_stride, lane);
  }
#pragma unroll
  for (int i = 1; i < kLanes; i *= 2) delta += __shfl_xor_sync(~0u, delta, i);
  if (tile.count == 0) return;
  clear_dq_row(tiles.dq_sums + index * kHeadWidth, lane);
  if (lane != 0) return;
  float* const facts =
      tiles.facts + index / kKvTile * (2 * kKvTile) + tilewright::abi::cuda::fact_place(in_tile);
  const bool is_kept = lse != -kInfinity;
  const float dlse = is_kept && arguments.dlse != nullptr ? arguments.dlse[lse_row] : 0.0f;
  facts[0] = is_kept ? lse_of_elements(lse) : is_row ? kInfinity : kGreatestFloat;
  facts[kKvTile] = is_kept ? delta - dlse : 0.0f;
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
// index: of the lane's row among those of all heads
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
    prepare_row(arguments, tiles, call, block * kPreparedRows + threadIdx.x / kLanes, threadIdx.x % kLanes);
  } else {
    prepare_rows_of_none(arguments, tiles, call,
                         (block - blocks) * tilewright::abi::cuda::kPlainThreads + threadIdx.x);
  }
}

}  // namespace tw_kernel
