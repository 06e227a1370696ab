#pragma once

#include "abi/cuda_packed.hpp"
#include "abi/plan.hpp"
#include "abi/tile_map.hpp"
#include "cuda/language.hpp"
#include "cuda/mask/counting_sort.hpp"
#include "cuda/plan/sequence_chunk.hpp"
#include "cuda/ptx/special_functions.hpp"
#include "kernel/configuration.hpp"

// The work of one list, entries that visit most tiles first: a counting sort by one block of threads. What
// it reads is far away, so a thread asks for several rows at once, and keeps what it has found of the first
// ones.

namespace tw_kernel {

using tilewright::abi::PlannedRow;

constexpr int kRowsAtOnce = 4;  // of a thread

// A row, and where it goes.
struct RankedRow {
  PlannedRow row;
  int bucket;
};

class RowOrder {
 public:
  __forceinline__ RowOrder(const PlanKernelArguments& arguments, int list, SequenceChunk& chunk)
      : arguments_(arguments),
        chunk_(chunk),
        spans_(arguments.plan.map.spans + first_row(arguments, list) *
                                              arguments.plan.map.spans_of_row),
        buckets_(kSortBuckets<kPlanThreads> / (arguments.groups + (kDecodes ? 1 : 0))) {
    // Roundings make a product with the scale greater by less than 2^-20 of it, so it stays below
    // `buckets_`; and it never falls where the cost rises.
    const int most_tiles = max((arguments.bounds.max_kv_len + kBlockKv - 1) / kBlockKv, 1);
    scale_ =
        static_cast<float>(buckets_ - 1) * tw_math::reciprocal(static_cast<float>(most_tiles));
  }

  static __forceinline__ long long first_row(const PlanKernelArguments& arguments, int list) {
    return static_cast<long long>(list) * arguments.plan.map.rows;
  }

  // Whether the chunk holds all sequences; else every pass over the rows reads them again.
  __forceinline__ bool has_one_chunk() const { return arguments_.plan.batch <= kPlanThreads; }

  // Rows of the chunk `first`, first + kPlanThreads, ...: kRowsAtOnce of them. Those that do not exist
  // have bucket -1.
  __forceinline__ void rank(int first_sequence, int first, RankedRow (&ranked)[kRowsAtOnce]) const {
    const int end = chunk_.rows_before[kPlanThreads];
    const int spans_of_row = arguments_.plan.map.spans_of_row;
    int at[kRowsAtOnce];  // in the chunk: the sequence
    find_sequences(first, at);
    const TileSpan* spans[kRowsAtOnce];
    bool has_second[kRowsAtOnce];
    int count[kRowsAtOnce], tiles[kRowsAtOnce];
    int most = 0;
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const ChunkSequence& sequence = chunk_.sequences[at[i]];
      const int entry = first + i * kPlanThreads - chunk_.rows_before[at[i]];
      const bool exists = first + i * kPlanThreads < end;
      const tilewright::abi::RowsOfWork work = tilewright::abi::rows_of_work(
          sequence.q_len, sequence.lead, entry, kBlockQ, kWorkSide);
      ranked[i].row = {first_sequence + at[i], entry};
      spans[i] = spans_ + static_cast<long long>(sequence.tile_row + work.q_block) * spans_of_row;
      has_second[i] =
          kWorkSide > kBlockQ && exists && tilewright::abi::spans_two_rows(work, kBlockQ);
      count[i] = exists && kHasMaskMod ? static_cast<int>(tilewright::abi::spans_of_columns(
                                             sequence.kv_len, kBlockKv))
                                       : 0;
      tiles[i] = kHasMaskMod ? 0 : (sequence.kv_len + kBlockKv - 1) / kBlockKv;
      ranked[i].bucket = exists ? (sequence.group + 1) * buckets_ - 1 : -1;
      most = max(most, count[i]);
    }
#pragma unroll 1
    for (int span = 0; span < most; ++span) {
      unsigned kept[kRowsAtOnce];
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i) {
        kept[i] = span < count[i] ? __ldcg(&spans[i][span].kept) : 0;
        if (has_second[i] && span < count[i]) kept[i] |= __ldcg(&spans[i][spans_of_row + span].kept);
      }
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i) tiles[i] += __popc(kept[i]);
    }
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      if (ranked[i].bucket >= 0) {
        ranked[i].bucket -= static_cast<int>(static_cast<float>(tiles[i]) * scale_);
      }
    }
  }

  // Calls body(row, bucket) for this thread's rows from `first` on.
  template <typename Body>
  __forceinline__ void for_each_from(int first, const Body& body) const {
    int rows = 0;
#pragma unroll 1
    for (int sequence = 0; sequence < arguments_.plan.batch; sequence += kPlanThreads) {
      if (!has_one_chunk()) {
        __syncthreads();  // no thread reads the chunk before any more
        rows = read_chunk(arguments_, sequence, rows, chunk_, nullptr);
      }
      const int thread = threadIdx.x;
      const int begin = chunk_.rows_before[0] + first + thread;
      const int end = chunk_.rows_before[kPlanThreads];
#pragma unroll 1
      for (int row = begin; row < end; row += kRowsAtOnce * kPlanThreads) {
        RankedRow ranked[kRowsAtOnce];
        rank(sequence, row, ranked);
#pragma unroll
        for (int i = 0; i < kRowsAtOnce; ++i) {
          if (ranked[i].bucket >= 0) body(ranked[i].row, ranked[i].bucket);
        }
      }
    }
  }

 private:
  // The last sequence that has not more rows before it than each row's number, all at once.
  __forceinline__ void find_sequences(int first, int (&at)[kRowsAtOnce]) const {
    for (int i = 0; i < kRowsAtOnce; ++i) at[i] = 0;
#pragma unroll 1
    for (int step = kPlanThreads / 2; step > 0; step /= 2) {
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i) {
        if (chunk_.rows_before[at[i] + step] <= first + i * kPlanThreads) at[i] += step;
      }
    }
  }

  const PlanKernelArguments& arguments_;
  SequenceChunk& chunk_;
  const TileSpan* spans_;  // [rows of the map][spans_of_row], of the list
  int buckets_;            // of a group
  float scale_;
};

// chunk: the first
TW_INLINE void order_rows(const PlanKernelArguments& arguments, int list, SequenceChunk& chunk) {
  const RowOrder order(arguments, list, chunk);
  PlannedRow* const work = arguments.plan.work + RowOrder::first_row(arguments, list);  // [rows]
  const bool keeps = order.has_one_chunk();
  RankedRow kept[kRowsAtOnce];
  if (keeps) order.rank(0, static_cast<int>(threadIdx.x), kept);
  const auto for_each_row = [&](const auto& body) {
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      if (keeps && kept[i].bucket >= 0) body(kept[i].row, kept[i].bucket);
    }
    order.for_each_from(keeps ? kRowsAtOnce * kPlanThreads : 0, body);
  };
  counting_sort<kPlanThreads>(
      for_each_row, [](const PlannedRow&, int bucket) { return bucket; },
      [&](int place, const PlannedRow& row, int) { work[place] = row; });
}

}  // namespace tw_kernel
