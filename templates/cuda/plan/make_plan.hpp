#pragma once

#include "abi/cuda_packed.hpp"
#include "abi/plan.hpp"
#include "abi/tile_map.hpp"
#include "cuda/language.hpp"
#include "cuda/plan/listed_span.hpp"
#include "cuda/plan/order_rows.hpp"
#include "cuda/plan/span.hpp"
#include "kernel/configuration.hpp"

// The plan of a step, in one launch: blocks of threads clamp the sequences and decide their tiles, and
// the last of them orders the rows.

namespace tw_kernel {

using tilewright::abi::FaultCounter;
using tilewright::abi::PlannedSequence;
using tilewright::abi::SnippetArguments;

// Which of the blocks of threads that share a sequence this one is.
TW_INLINE int block_of_sequence(const PlanKernelArguments& arguments) {
  return static_cast<int>(blockIdx.x % arguments.blocks_of_sequence);
}

// Clamps sequence b for the whole block. Its first block of threads also writes it down.
TW_INLINE void read_sequence(const PlanKernelArguments& arguments, int b,
                             PlannedSequence& sequence) {
  if (threadIdx.x != 0) return;
  FaultCounter faults;
  sequence = tilewright::abi::plan_sequence(arguments.tensors, arguments.bounds, b, faults);
  if (block_of_sequence(arguments) == 0) arguments.plan.sequences[b] = sequence;
}

// The call as the snippets of one sequence see it, in shared memory.
TW_INLINE void enter_sequence(const SnippetArguments& call, const PlannedSequence& sequence,
                              SnippetArguments& of_sequence) {
  if (threadIdx.x != 0) return;
  of_sequence = call;
  of_sequence.q_len = sequence.q_len;
  of_sequence.kv_len = sequence.kv_len;
  of_sequence.q_offset = sequence.q_offset;
  of_sequence.kv_offset = sequence.kv_offset;
  of_sequence.q_token_offset = tilewright::abi::q_token_offset(sequence);
  of_sequence.kv_token_offset = tilewright::abi::kv_token_offset(sequence);
}

// Rows of tiles of one sequence, in each list, from this block's first on. A warp decides a span.
TW_INLINE void decide_rows(const PlanKernelArguments& arguments, const SnippetArguments& call,
                           const PlannedSequence& sequence, int b) {
  const tilewright::abi::TileMap& map = arguments.plan.map;
  const int q_blocks =
      tilewright::abi::count_q_blocks(sequence.q_len, sequence.lead, kBlockQ);
  const auto spans =
      static_cast<int>(tilewright::abi::spans_of_columns(sequence.kv_len, kBlockKv));
  const long long items = static_cast<long long>(map.heads) * q_blocks * spans;
  constexpr int kWarpsOfBlock = kPlanThreads / 32;
  const int warp = threadIdx.x / 32;
#pragma unroll 1
  for (long long item = block_of_sequence(arguments) * kWarpsOfBlock + warp; item < items;
       item += static_cast<long long>(arguments.blocks_of_sequence) * kWarpsOfBlock) {
    const int span = static_cast<int>(item % spans);
    const int q_block = static_cast<int>(item / spans % q_blocks);
    const int head = static_cast<int>(item / spans / q_blocks);
    const TileSpan decided =
        tilewright::abi::has_positions(arguments.bounds)
            ? listed_span(arguments.positions, sequence, head, q_block, span)
            : decide_span(arguments, call, b, head, q_block, span);
    if (threadIdx.x % 32 != 0) continue;
    const long long row = static_cast<long long>(head) * map.rows + sequence.tile_row + q_block;
    map.spans[row * map.spans_of_row + span] = decided;
  }
}

// Whether this is the last block of the launch to come here: then what all others wrote is visible.
TW_INLINE bool is_last_block(unsigned& arrived) {
  __shared__ bool is_last;
  __threadfence();  // what this thread wrote comes before its block's arrival
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(&arrived, 1u) + 1 == gridDim.x;
    if (is_last) arrived = 0;  // for the next launch
    __threadfence();  // what the other blocks wrote before they arrived comes before what is read now
  }
  __syncthreads();  // is_last is there
  return is_last;
}

TW_INLINE void make_plan(const PlanKernelArguments& arguments, const SnippetArguments& call) {
  __shared__ PlannedSequence sequence;
  __shared__ SnippetArguments of_sequence;
#pragma unroll 1
  for (int b = blockIdx.x / arguments.blocks_of_sequence; b < arguments.plan.batch;
       b += gridDim.x / arguments.blocks_of_sequence) {
    read_sequence(arguments, b, sequence);
    if (kHasMaskMod) enter_sequence(call, sequence, of_sequence);
    __syncthreads();  // the sequence is there
    if (kHasMaskMod) decide_rows(arguments, of_sequence, sequence, b);
    __syncthreads();  // no thread reads the sequence any more
  }
  if (is_last_block(arguments.plan.header->arrived)) order_all_rows(arguments);
}

}  // namespace tw_kernel
