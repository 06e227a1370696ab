#pragma once

#include "abi/cuda_mask.hpp"
#include "abi/cuda_packed.hpp"
#include "abi/plan.hpp"
#include "abi/tile_map.hpp"
#include "cuda/language.hpp"
#include "cuda/mask/evaluate.hpp"
#include "kernel/configuration.hpp"
#include "kernel/warp_sequence.hpp"
#include "mask/tile_range.hpp"

// The states of 32 neighbouring tiles of one row, by a warp: each lane proves a tile, and tiles that no
// proof decides are evaluated by all lanes. Evaluation takes long, so several warps may share a span:
// each decides a part of its tiles.

namespace tw_kernel {

using tilewright::abi::kTilesOfSpan;
using tilewright::abi::SequenceRows;
using tilewright::abi::TileSpan;
using tilewright::abi::cuda::kPlanThreads;
using tilewright::abi::cuda::PlanKernelArguments;

static_assert(kPlanThreads <= tilewright::abi::cuda::kMostProvers);

TW_INLINE TileRange tile_range(const SequenceRows& sequence, int q_block, int tile) {
  const int row = q_block * kBlockQ, column = tile * kBlockKv;
  return {row + sequence.q_offset, min(kBlockQ, sequence.q_len - row),
          column + sequence.kv_offset, min(kBlockKv, sequence.kv_len - column)};
}

// The tiles of one part; all others are empty. Returns the same in all lanes.
TW_INLINE TileSpan decide_span(const PlanKernelArguments& arguments, const SnippetArguments& call,
                               const WarpSequence& sequence, const RowPlace& place, int q_block,
                               int span, int part) {
  const int lane = threadIdx.x % 32;
  const int tile = span * kTilesOfSpan + lane;
  bool open = tile < (sequence.kv_len + kBlockKv - 1) / kBlockKv &&
              lane * arguments.parts_of_span / kTilesOfSpan == part;
  bool full = false;
  if constexpr (kProves) {
    if (open) {
      const Proof proof =
          prove(arguments, call, place, tile_range(sequence, q_block, tile), sequence);
      open = proof == Proof::undecided;
      full = proof == Proof::full;
    }
  }
  __syncwarp();
  TileSpan states = {__ballot_sync(~0u, full), 0};
#pragma unroll 1
  for (unsigned left = __ballot_sync(~0u, open); left != 0; left &= left - 1) {
    const int bit = __ffs(left) - 1;
    const TileRange tile_of_bit = tile_range(sequence, q_block, span * kTilesOfSpan + bit);
    const Kept kept = evaluate_tile(call, place, tile_of_bit, sequence);
    if (kept.some) states.kept |= 1u << bit;
    if (kept.is_partial()) states.partial |= 1u << bit;
  }
  return states;
}

}  // namespace tw_kernel
