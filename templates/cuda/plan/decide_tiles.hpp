#pragma once

#include "abi/cuda_packed.hpp"
#include "abi/plan.hpp"
#include "abi/tile_map.hpp"
#include "cuda/language.hpp"
#include "cuda/plan/listed_span.hpp"
#include "cuda/plan/span.hpp"
#include "kernel/configuration.hpp"
#include "kernel/warp_sequence.hpp"
#include "mask/tile_range.hpp"

// The tiles of one list, by the warps of several blocks of threads. Warps share sequences alike,
// whatever these hold, so that no warp waits for another before its first tile.

namespace tw_kernel {

using tilewright::abi::FaultCounter;
using tilewright::abi::PlannedSequence;

constexpr int kPlanWarps = kPlanThreads / 32;

// Writes one part of a span, a byte of eight tiles by each lane.
TW_INLINE void store_part(TileSpan* span, const TileSpan& states, int part, int parts) {
  const int lane = threadIdx.x % 32;
  if (lane >= 8 || lane % 4 * parts / 4 != part) return;
  const unsigned word = lane < 4 ? states.kept : states.partial;
  reinterpret_cast<unsigned char*>(span)[lane] =
      static_cast<unsigned char>(word >> lane % 4 * 8 & 0xff);
}

// A warp's tiles of one sequence, which has the warps from 0 to warps_of_sequence.
TW_INLINE void decide_sequence(const PlanKernelArguments& arguments, const SnippetArguments& call,
                               const WarpSequence& sequence, const RowPlace& place, int list,
                               int warp) {
  const tilewright::abi::TileMap& map = arguments.plan.map;
  const int parts = arguments.parts_of_span;
  const int q_blocks =
      tilewright::abi::count_q_blocks(sequence.q_len, sequence.lead, kBlockQ);
  const int items_of_row =
      static_cast<int>(tilewright::abi::spans_of_columns(sequence.kv_len, kBlockKv)) * parts;
  if (items_of_row == 0) return;
  const int rows_of_step = arguments.warps_of_sequence / items_of_row;
  const int items_of_step = arguments.warps_of_sequence % items_of_row;
  TileSpan* const spans =  // [q_blocks][spans_of_row]
      map.spans +
      (static_cast<long long>(list) * map.rows + sequence.tile_row) * map.spans_of_row;
  int q_block = warp / items_of_row;
  int item = warp % items_of_row;
#pragma unroll 1
  while (q_block < q_blocks) {
    const int span = item / parts, part = item % parts;
    const TileSpan decided =
        tilewright::abi::has_positions(arguments.bounds)
            ? listed_span(arguments.positions, sequence, place.h, q_block, span)
            : decide_span(arguments, call, sequence, place, q_block, span, part);
    store_part(spans + static_cast<long long>(q_block) * map.spans_of_row + span, decided, part,
               parts);
    q_block += rows_of_step;
    item += items_of_step;
    if (item < items_of_row) continue;
    item -= items_of_row;
    ++q_block;
  }
}

// block: of those that share the list
TW_INLINE void decide_tiles(const PlanKernelArguments& arguments, const SnippetArguments& call,
                            int list, int block) {
  __shared__ WarpSequence of_warp[kPlanWarps];
  WarpSequence& sequence = of_warp[threadIdx.x / 32];
  const int warp = block * kPlanWarps + static_cast<int>(threadIdx.x / 32);
  const int side_by_side =
      arguments.blocks_of_list * kPlanWarps / arguments.warps_of_sequence;  // sequences
  RowPlace place = {0, list, list / (call.num_q_heads / call.num_kv_heads)};
#pragma unroll 1
  for (place.b = warp / arguments.warps_of_sequence; place.b < arguments.plan.batch;
       place.b += side_by_side) {
    FaultCounter faults = {.is_reported = false};
    const PlannedSequence planned =
        tilewright::abi::plan_sequence(arguments.tensors, arguments.bounds, place.b, faults);
    if (threadIdx.x % 32 == 0) sequence = warp_sequence(planned, call, place.b);
    __syncwarp();  // the sequence is there
    decide_sequence(arguments, call, sequence, place, list, warp % arguments.warps_of_sequence);
    __syncwarp();  // no lane reads the sequence any more
  }
}

}  // namespace tw_kernel
