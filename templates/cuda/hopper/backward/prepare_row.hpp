#pragma once

#include "abi/cuda_backward.hpp"
#include "abi/cuda_hopper_backward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/backward/out_rows.hpp"
#include "cuda/constants.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"
#include "kernel/hopper_backward_columns.hpp"

// What a row of q brings to its elements, in a dense call and in a packed one.

namespace tw_kernel {

using tilewright::abi::cuda::BackwardArguments;

constexpr float kGreatestFloat = 0x1.fffffep127f;
constexpr int kPreparedRows = tilewright::abi::cuda::kPlainThreads / kLanesOfRow<kValueDim>;  // of a block of threads

struct PreparedRow {
  int b;
  int h;
  int row;            // of q, in the batch
  int in_tile;
  long long lse_row;  // of lse and dlse
  bool has_tile;      // false: the thread's place is past all tiles
  bool is_row;        // false: the tile's sequence has fewer rows
};

TW_INLINE void clear_dq_row(float* sums, int lane) {
  for (int column = lane * 4; column < kHeadWidth; column += kLanesOfRow<kValueDim> * 4) {
    *reinterpret_cast<float4*>(sums + column) = {0.0f, 0.0f, 0.0f, 0.0f};
  }
}

// dout and dlse of a row with nothing kept count as 0.
// index: of the row, counted over all tiles
TW_INLINE void prepare_row(const BackwardArguments& arguments, const HopperBackwardArguments& tiles,
                           const PreparedRow& at, long long index, int lane) {
  const float lse = at.is_row ? arguments.lse[at.lse_row] : -kInfinity;
  float delta = 0.0f;
  if (lse != -kInfinity) {
    delta = multiply_chunks<kValueDim>(
        head_of<const OutElement>(arguments.out, at.b, at.h) + at.row * arguments.out.row_stride,
        head_of<const OutElement>(arguments.dout, at.b, at.h) + at.row * arguments.dout.row_stride, lane);
  }
#pragma unroll
  for (int i = 1; i < kLanesOfRow<kValueDim>; i *= 2) delta += __shfl_xor_sync(~0u, delta, i);
  if (!at.has_tile) return;
  clear_dq_row(tiles.dq_sums + index * kHeadWidth, lane);
  if (lane != 0) return;
  float* const facts =
      tiles.facts + index / kKvTile * (2 * kKvTile) + tilewright::abi::cuda::fact_place(at.in_tile);
  const bool is_kept = lse != -kInfinity;
  const float dlse = is_kept && arguments.dlse != nullptr ? arguments.dlse[at.lse_row] : 0.0f;
  facts[0] = is_kept ? lse_of_elements(lse) : at.is_row ? kInfinity : kGreatestFloat;
  // Where lse is NaN so is delta, which would make NaN of what is dropped: 0 (d - delta).
  const bool is_number = lse == lse;
  facts[kKvTile] = is_kept && is_number ? delta - dlse : 0.0f;
}

}  // namespace tw_kernel
