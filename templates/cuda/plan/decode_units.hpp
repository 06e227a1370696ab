#pragma once

#include "abi/cuda_packed.hpp"
#include "abi/decode.hpp"
#include "abi/tile_map.hpp"
#include "cuda/decode/units.hpp"
#include "cuda/language.hpp"
#include "cuda/mask/sum_before.hpp"
#include "cuda/plan/sequence_chunk.hpp"
#include "kernel/configuration.hpp"

// How much work the sequences are that a decode kernel computes.

namespace tw_kernel {

// The units of one head of k and v.
TW_INLINE int count_units(const PlanKernelArguments& arguments, const HeadsOfList& heads,
                          const ChunkSequence& sequence) {
  const tilewright::abi::TileMap& map = arguments.plan.map;
  if (!kHasMaskMod) return max(units_of_columns(sequence.kv_len), 1);
  const auto spans =
      static_cast<int>(tilewright::abi::spans_of_columns(sequence.kv_len, kBlockKv));
  int tiles = 0;
  bool has_last = false;  // tile of the sequence, which may have fewer columns
  const int last_tile = (sequence.kv_len - 1) / kBlockKv;
#pragma unroll 1
  for (int span = 0; span < spans; ++span) {
    const TileSpan kept = read_span(map, heads, sequence.tile_row, span);
    tiles += __popc(kept.kept);
    has_last = (kept.kept >> last_tile % tilewright::abi::kTilesOfSpan & 1u) != 0;
  }
  const int columns_of_last = sequence.kv_len - last_tile * kBlockKv;
  const int missing = has_last ? kUnitsOfTile - units_of_columns(columns_of_last) : 0;
  return max(tiles * kUnitsOfTile - missing, 1);
}

// Writes DecodeWork::units_before. By the block that comes last of all, whose chunk is the last that
// was read.
TW_INLINE void count_decode_units(const PlanKernelArguments& arguments,
                                  const SnippetArguments& call, SequenceChunk& chunk) {
  __shared__ int sums[kPlanThreads / 32];
  __shared__ int of_chunk;
  const tilewright::abi::DecodeWork& decode = arguments.plan.decode;
  const int batch = arguments.plan.batch, lists = decode.lists;
  const int items_of_entry = call.num_kv_heads / lists;
  const int thread = threadIdx.x;
  int before = 0;
  int rows = 0;
#pragma unroll 1
  for (int first = 0; first < batch; first += kPlanThreads) {
    __syncthreads();  // no thread reads the chunk or the sums before any more
    if (batch > kPlanThreads) rows = read_chunk(arguments, first, rows, chunk, nullptr);
    const ChunkSequence& sequence = chunk.sequences[thread];
    const bool decoded = first + thread < batch && sequence.group == arguments.groups;
    const auto units_of = [&](int list) {
      const HeadsOfList heads = heads_of_list(arguments.plan.map, call.num_q_heads, list, lists);
      return count_units(arguments, heads, sequence) * items_of_entry;
    };
    int own = 0;
#pragma unroll 1
    for (int list = 0; list < lists && decoded; ++list) own += units_of(list);
    int at = before + sum_before<kPlanThreads>(own, sums);
    if (thread == kPlanThreads - 1) of_chunk = at + own;
#pragma unroll 1
    for (int list = 0; list < lists && first + thread < batch; ++list) {
      decode.units_before[static_cast<long long>(first + thread) * lists + list] = at;
      if (decoded && lists > 1) at += units_of(list);
    }
    __syncthreads();  // the chunk's sum is there
    before = of_chunk;
  }
  if (thread == 0) decode.units_before[static_cast<long long>(batch) * lists] = before;
}

}  // namespace tw_kernel
