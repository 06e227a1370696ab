#pragma once

#include "abi/cuda_backward.hpp"
#include "cuda/backward/out_rows.hpp"
#include "cuda/hopper/backward/prepare_row.hpp"
#include "cuda/language.hpp"
#include "kernel/own_rows.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"

// What each row of q brings to its elements, in tiles, and zeros where sums of dQ begin, in a dense call.

namespace tw_kernel {

TW_INLINE void prepare(const BackwardArguments& arguments, const HopperBackwardArguments& tiles,
                       const SnippetArguments& call) {
  constexpr int kLanes = kLanesOfRow<kValueDim>;
  const long long index = static_cast<long long>(blockIdx.x) * kPreparedRows + threadIdx.x / kLanes;
  const int rows = tiles.q_tiles * kKvTile;
  const long long head = index / rows;
  const int row = static_cast<int>(index % rows);
  const bool has_tile = head < heads_of_call(call);
  prepare_row(arguments, tiles,
              {static_cast<int>(head / call.num_q_heads), static_cast<int>(head % call.num_q_heads), row, row % kKvTile,
               head * call.q_len + row, has_tile, has_tile && row < call.q_len},
              index, threadIdx.x % kLanes);
}

}  // namespace tw_kernel
