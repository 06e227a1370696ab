#pragma once

#include "abi/cuda_backward.hpp"
#include "cuda/hopper/backward/dq_tile.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"

// Rows of q in tiles, in a dense call: each head's begin with a tile.

namespace tw_kernel {

using tilewright::abi::cuda::BackwardArguments;

// number: of the tile, counted over all heads
TW_INLINE bool has_dq_tile(const HopperBackwardArguments&, long long) { return true; }

TW_INLINE DqTile find_dq_tile(const HopperBackwardArguments& tiles, const SnippetArguments& call, long long number) {
  const int head = static_cast<int>(number / tiles.q_tiles);
  const int first = static_cast<int>(number % tiles.q_tiles) * kKvTile;
  return {head / call.num_q_heads, head % call.num_q_heads, first, call.q_len};
}

}  // namespace tw_kernel
