#pragma once

#include "abi/cuda_packed.hpp"
#include "abi/tile_map.hpp"
#include "cuda/language.hpp"
#include "cuda/mask/evaluate.hpp"
#include "kernel/configuration.hpp"
#include "mask/tile_range.hpp"

// The states of 32 neighbouring tiles of one row, by a warp: each lane proves a tile, and tiles that no
// proof decides are evaluated by all lanes.

namespace tw_kernel {

using tilewright::abi::kTilesOfSpan;
using tilewright::abi::TileSpan;
using tilewright::abi::cuda::kPlanThreads;
using tilewright::abi::cuda::PlanKernelArguments;

TW_INLINE TileRange tile_range(const SnippetArguments& call, int q_block, int tile) {
  const int row = q_block * kBlockQ, column = tile * kBlockKv;
  return {row + call.q_offset, min(kBlockQ, call.q_len - row), column + call.kv_offset,
          min(kBlockKv, call.kv_len - column)};
}

// call: one sequence's. Returns the same in all lanes.
TW_INLINE TileSpan decide_span(const PlanKernelArguments& arguments, const SnippetArguments& call,
                               int b, int h, int q_block, int span) {
  const int lane = threadIdx.x % 32;
  const RowPlace place = {b, h, h / (call.num_q_heads / call.num_kv_heads)};
  const int tile = span * kTilesOfSpan + lane;
  bool open = tile < (call.kv_len + kBlockKv - 1) / kBlockKv;
  bool full = false;
  if constexpr (kProves) {
    if (open) {
      const Proof proof = prove(arguments, call, place, tile_range(call, q_block, tile));
      open = proof == Proof::undecided;
      full = proof == Proof::full;
    }
  }
  __syncwarp();
  TileSpan states = {__ballot_sync(~0u, full), 0};
#pragma unroll 1
  for (unsigned left = __ballot_sync(~0u, open); left != 0; left &= left - 1) {
    const int bit = __ffs(left) - 1;
    const Kept kept =
        evaluate_tile(call, place, tile_range(call, q_block, span * kTilesOfSpan + bit));
    if (kept.some) states.kept |= 1u << bit;
    if (kept.is_partial()) states.partial |= 1u << bit;
  }
  return states;
}

}  // namespace tw_kernel
