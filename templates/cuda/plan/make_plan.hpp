#pragma once

#include "abi/cuda_packed.hpp"
#include "cuda/language.hpp"
#include "cuda/plan/decide_tiles.hpp"
#include "cuda/plan/decode_units.hpp"
#include "cuda/plan/order_rows.hpp"
#include "cuda/plan/sequence_chunk.hpp"
#include "kernel/configuration.hpp"

// The plan of a step, in one launch: blocks of threads decide the tiles of a list each, and the last of
// them to be done orders the list's rows of tiles. The first block of all writes the sequences down.
//
// A plan is small, so what counts is how many reads wait for one another: the sequences' tensors,
// then the list's counter, then the tiles. Sequences are read while the counter is on its way.

namespace tw_kernel {

// Whether the block is the last of its list to come here: then what all others wrote is visible, after a
// barrier, to the block. By one thread, after a barrier.
TW_INLINE bool is_last_block(unsigned& arrived, int blocks) {
  if (blocks == 1) return true;
  __threadfence();  // what the block wrote comes before its arrival
  if (atomicAdd(&arrived, 1u) + 1 != static_cast<unsigned>(blocks)) return false;
  arrived = 0;  // for the next launch
  __threadfence();  // what the other blocks wrote before they arrived comes before what is read now
  return true;
}

// Writes the sequences and the header. rows: entries of work of the first chunk, which is written already
TW_INLINE void write_sequences(const PlanKernelArguments& arguments, int rows, SequenceChunk& chunk,
                               SequenceSums& sums) {
#pragma unroll 1
  for (int first = kPlanThreads; first < arguments.plan.batch; first += kPlanThreads) {
    __syncthreads();  // no thread reads the chunk before any more
    rows = read_chunk(arguments, first, rows, chunk, &sums);
  }
  if (threadIdx.x == 0) write_header(sums, *arguments.plan.header);
}

TW_INLINE void make_plan(const PlanKernelArguments& arguments, const SnippetArguments& call) {
  __shared__ SequenceChunk chunk;
  __shared__ SequenceSums sums;
  __shared__ bool is_last;         // of its list
  __shared__ bool is_last_of_all;  // lists
  const int list = static_cast<int>(blockIdx.x) / arguments.blocks_of_list;
  if (threadIdx.x == 0) sums = {0, arguments.plan.batch, 0, {}};
  if (kHasMaskMod) {
    decide_tiles(arguments, call, list,
                 static_cast<int>(blockIdx.x) % arguments.blocks_of_list);
  }
  __syncthreads();  // the block has written its tiles, and the sums are empty
  // Of a warp that most calls have no sequence for.
  if (threadIdx.x == kPlanThreads - 1) {
    is_last = is_last_block(arguments.arrivals[list], arguments.blocks_of_list);
    is_last_of_all = kDecodes && is_last &&
                     is_last_block(arguments.plan.header->arrived, arguments.plan.map.heads);
  }
  const bool writes = blockIdx.x == 0;
  const int rows = read_chunk(arguments, 0, 0, chunk, writes ? &sums : nullptr);
  if (writes) write_sequences(arguments, rows, chunk, sums);
  if (is_last) order_rows(arguments, list, chunk);
  // A plan for masks alone has no room for what is decoded.
  const bool decodes = kDecodes && arguments.plan.decode.lists > 0;
  if (decodes && is_last_of_all) count_decode_units(arguments, call, chunk);
}

}  // namespace tw_kernel
