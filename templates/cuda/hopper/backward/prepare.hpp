#pragma once

#include "abi/cuda_backward.hpp"
#include "abi/cuda_hopper_backward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/backward/out_rows.hpp"
#include "cuda/constants.hpp"
#include "cuda/hopper/backward/clear_dq_row.hpp"
#include "cuda/language.hpp"
#include "kernel/own_rows.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"

// What each row of q brings to its elements, in tiles, and zeros where sums of dQ begin.

namespace tw_kernel {

// dout and dlse of a row with nothing kept count as 0.
TW_INLINE void prepare(const BackwardArguments& arguments, const HopperBackwardArguments& tiles,
                       const SnippetArguments& call) {
  constexpr int kLanes = kLanesOfRow<kValueDim>;
  constexpr int kRowsOfBlock = tilewright::abi::cuda::kPlainThreads / kLanes;
  const int lane = threadIdx.x % kLanes;
  const long long index = static_cast<long long>(blockIdx.x) * kRowsOfBlock + threadIdx.x / kLanes;
  const int rows = tiles.q_tiles * kKvTile;
  const long long head = index / rows;
  const int row = static_cast<int>(index % rows);
  const bool exists = head < heads_of_call(call);
  const int b = static_cast<int>(head / call.num_q_heads), h = static_cast<int>(head % call.num_q_heads);
  const long long lse_row = head * call.q_len + row;
  const bool is_row = exists && row < call.q_len;
  const float lse = is_row ? arguments.lse[lse_row] : -kInfinity;
  float delta = 0.0f;
  if (lse != -kInfinity) {
    delta = multiply_chunks<kValueDim>(
        head_of<const OutElement>(arguments.out, b, h) + row * arguments.out.row_stride,
        head_of<const OutElement>(arguments.dout, b, h) + row * arguments.dout.row_stride, lane);
  }
#pragma unroll
  for (int i = 1; i < kLanes; i *= 2) delta += __shfl_xor_sync(~0u, delta, i);
  if (!exists) return;
  clear_dq_row(tiles.dq_sums + index * kHeadWidth, lane);
  if (lane != 0) return;
  float* const facts = tiles.facts + index / kKvTile * (2 * kKvTile) +
                       tilewright::abi::cuda::fact_place(row % kKvTile);
  const bool is_kept = lse != -kInfinity;
  const float dlse = is_kept && arguments.dlse != nullptr ? arguments.dlse[lse_row] : 0.0f;
  facts[0] = is_kept ? lse_of_elements(lse) : is_row ? kInfinity : kGreatestFloat;
  facts[kKvTile] = is_kept ? delta - dlse : 0.0f;
}

}  // namespace tw_kernel
