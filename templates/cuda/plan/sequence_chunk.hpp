#pragma once

#include "abi/cuda_packed.hpp"
#include "abi/plan.hpp"
#include "cuda/language.hpp"
#include "cuda/mask/sum_before.hpp"
#include "cuda/plan/span.hpp"
#include "kernel/configuration.hpp"

// As many sequences as a block has threads, as the order of rows needs them.

namespace tw_kernel {

using tilewright::abi::FaultCounter;
using tilewright::abi::kMostPlanGroups;
using tilewright::abi::PlanHeader;
using tilewright::abi::PlannedSequence;

struct ChunkSequence {
  int tile_row;
  int lead;
  int q_len;
  int kv_len;
  int group;  // whose K and V its own are read with; the last group's number + 1 where it is decoded
};

struct SequenceChunk {
  ChunkSequence sequences[kPlanThreads];
  // Entries of work of all sequences before each, and before the end of the chunk. Sequences that
  // overlap, because q_begin lies, may have more than there is room for: then the last have none.
  int rows_before[kPlanThreads + 1];
};

// What the header says of all sequences. It lies in shared memory, as zeros but for first_faulty.
struct SequenceSums {
  int faults;
  int first_faulty;  // batch where there is none
  int end_of_q;
  int rows[kMostPlanGroups + 1];  // of each group, then of sequences that are decoded
};

TW_INLINE int group_of(const PlanKernelArguments& arguments, int kv_begin) {
  return arguments.groups == 1 ? 0
                               : min(kv_begin / arguments.kv_rows_of_group, arguments.groups - 1);
}

TW_INLINE void sum_up(const PlannedSequence& sequence, int b, int group, int rows,
                      SequenceSums& sums) {
  if (sequence.faults > 0) {
    atomicAdd(&sums.faults, sequence.faults);
    atomicMin(&sums.first_faulty, b);
  }
  atomicMax(&sums.end_of_q, sequence.q_begin + sequence.q_len);
  atomicAdd(&sums.rows[group], rows);
}

// Reads and clamps the sequences from `first` on, a thread each, for the whole block.
// rows: entries of work of the sequences before
// sums: null, or where a block sums up what it also writes into the plan
// Returns `rows` for the next chunk.
__noinline__ int read_chunk(const PlanKernelArguments& arguments, int first, int rows,
                            SequenceChunk& chunk, SequenceSums* sums) {
  __shared__ long long sums_of_rows[kPlanThreads / 32];
  const int thread = threadIdx.x;
  const int b = first + thread;
  const bool exists = b < arguments.plan.batch;
  PlannedSequence sequence = {};
  if (exists) {
    FaultCounter faults = {.is_reported = sums != nullptr};
    sequence = tilewright::abi::plan_sequence(arguments.tensors, arguments.bounds, b, faults);
  }
  const bool decoded =
      kDecodes && tilewright::abi::is_decoded(arguments.bounds, sequence.q_len, sequence.lead);
  const int group = decoded ? arguments.groups : group_of(arguments, sequence.kv_begin);
  const long long own =
      tilewright::abi::count_work(sequence.q_len, sequence.lead, kBlockQ, kWorkSide);
  const long long begin = rows + sum_before<kPlanThreads>(own, sums_of_rows);
  const long long room = arguments.plan.map.rows;
  const int own_begin = static_cast<int>(min(begin, room));
  const int own_end = static_cast<int>(min(begin + own, room));
  chunk.sequences[thread] = {sequence.tile_row, sequence.lead, sequence.q_len, sequence.kv_len,
                             group};
  chunk.rows_before[thread + 1] = own_end;
  if (thread == 0) chunk.rows_before[0] = own_begin;
  if (exists && sums != nullptr) {
    arguments.plan.sequences[b] = sequence;
    sum_up(sequence, b, decoded ? kMostPlanGroups : group, own_end - own_begin, *sums);
  }
  __syncthreads();  // the chunk is there, and sums_of_rows may be used again
  return chunk.rows_before[kPlanThreads];
}

TW_INLINE void write_header(const SequenceSums& sums, PlanHeader& header) {
  header.faults = static_cast<unsigned long long>(sums.faults);
  header.first_faulty = sums.first_faulty;
  header.end_of_q = sums.end_of_q;
  int begin = 0;
#pragma unroll 1
  for (int group = 0; group < kMostPlanGroups; ++group) {
    header.group_begin[group] = begin;
    begin += sums.rows[group];
  }
  header.group_begin[kMostPlanGroups] = header.rows = begin;
  header.all_rows = begin + sums.rows[kMostPlanGroups];
}

}  // namespace tw_kernel
