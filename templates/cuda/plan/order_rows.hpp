#pragma once

#include "abi/cuda_packed.hpp"
#include "abi/plan.hpp"
#include "abi/tile_map.hpp"
#include "cuda/language.hpp"
#include "cuda/mask/counting_sort.hpp"
#include "cuda/plan/span.hpp"
#include "cuda/ptx/special_functions.hpp"
#include "kernel/configuration.hpp"

// The rows of tiles of all sequences, those that visit most tiles first: a counting sort by one block of
// threads, which also sums up what was clamped.

namespace tw_kernel {

using tilewright::abi::PlanHeader;
using tilewright::abi::PlannedSequence;
using tilewright::abi::cuda::PlanArguments;

// Rows of tiles of a sequence.
TW_INLINE int q_blocks_of(const PlanArguments& plan, int b) {
  const PlannedSequence* const sequence = plan.sequences + b;
  return tilewright::abi::count_q_blocks(__ldcg(&sequence->q_len), __ldcg(&sequence->lead), kBlockQ);
}

// Calls body(b, q_block) for each row of tiles: a warp has a sequence, a lane a row.
template <typename Body>
TW_INLINE void for_each_row(const PlanArguments& plan, const Body& body) {
#pragma unroll 1
  for (int b = threadIdx.x / 32; b < plan.batch; b += kPlanThreads / 32) {
    const int q_blocks = q_blocks_of(plan, b);
#pragma unroll 1
    for (int i = threadIdx.x % 32; i < q_blocks; i += 32) body(b, i);
  }
}

// Tiles that a row visits; its columns of blocks where there is no map.
TW_INLINE int cost_of_row(const PlanArguments& plan, int head, int b, int q_block) {
  const int kv_len = __ldcg(&plan.sequences[b].kv_len);
  if (!kHasMaskMod) return (kv_len + kBlockKv - 1) / kBlockKv;
  const long long row = static_cast<long long>(head) * plan.map.rows + q_block +
                        __ldcg(&plan.sequences[b].tile_row);
  const TileSpan* const spans = plan.map.spans + row * plan.map.spans_of_row;
  const auto count = static_cast<int>(tilewright::abi::spans_of_columns(kv_len, kBlockKv));
  int tiles = 0;
#pragma unroll 1
  for (int i = 0; i < count; ++i) tiles += __popc(__ldcg(&spans[i].kept));
  return tiles;
}

// The group whose K and V a sequence's are read with.
TW_INLINE int group_of(const PlanKernelArguments& arguments, int b) {
  if (arguments.groups == 1) return 0;
  const int kv_begin = __ldcg(&arguments.plan.sequences[b].kv_begin);
  return min(kv_begin / arguments.kv_rows_of_group, arguments.groups - 1);
}

// Sorts one list.
TW_INLINE void order_rows(const PlanKernelArguments& arguments, int head, int most_tiles) {
  const PlanArguments& plan = arguments.plan;
  const int buckets = kSortBuckets<kPlanThreads> / arguments.groups;  // of a group
  tilewright::abi::PlannedRow* const work =
      plan.work + static_cast<long long>(head) * plan.map.rows;
  // Roundings make a product with the scale greater by less than 2^-20 of it, so it stays below
  // `buckets`; and it never falls where the cost rises.
  const float scale =
      static_cast<float>(buckets - 1) * tw_math::reciprocal(static_cast<float>(most_tiles));
  const auto bucket_of = [&](int b, int q_block) {
    const auto cost = static_cast<float>(cost_of_row(plan, head, b, q_block));
    return (group_of(arguments, b) + 1) * buckets - 1 - static_cast<int>(cost * scale);
  };
  const auto for_each_item = [&](const auto& body) { for_each_row(plan, body); };
  counting_sort<kPlanThreads>(for_each_item, bucket_of, [&](int place, int b, int q_block) {
    // Sequences that overlap, because q_begin lies, may have more rows than there is room for.
    if (place < plan.map.rows) work[place] = {b, q_block};
  });
  __syncthreads();  // shared memory may be used again
}

// Where each group's rows begin in every list, and where they end.
TW_INLINE void find_groups(const PlanKernelArguments& arguments, PlanHeader& header) {
  const PlanArguments& plan = arguments.plan;
  __shared__ int rows[tilewright::abi::kMostPlanGroups];
  if (threadIdx.x < tilewright::abi::kMostPlanGroups) rows[threadIdx.x] = 0;
  __syncthreads();  // the sums are empty
#pragma unroll 1
  for (int b = threadIdx.x; b < plan.batch; b += kPlanThreads) {
    atomicAdd(&rows[group_of(arguments, b)], q_blocks_of(plan, b));
  }
  __syncthreads();  // the sums are complete
  if (threadIdx.x != 0) return;
  int begin = 0;
#pragma unroll 1
  for (int group = 0; group < tilewright::abi::kMostPlanGroups; ++group) {
    header.group_begin[group] = begin;
    begin = min(begin + rows[group], plan.map.rows);
  }
  header.group_begin[tilewright::abi::kMostPlanGroups] = header.rows = begin;
}

// What was clamped, and where the rows of q end.
TW_INLINE void sum_up(const PlanArguments& plan, PlanHeader& header) {
  __shared__ int faults, first_faulty, end_of_q;
  if (threadIdx.x == 0) {
    faults = end_of_q = 0;
    first_faulty = plan.batch;
  }
  __syncthreads();  // the sums are empty
#pragma unroll 1
  for (int b = threadIdx.x; b < plan.batch; b += kPlanThreads) {
    const PlannedSequence* const sequence = plan.sequences + b;
    const int count = __ldcg(&sequence->faults);
    if (count > 0) {
      atomicAdd(&faults, count);
      atomicMin(&first_faulty, b);
    }
    atomicMax(&end_of_q, __ldcg(&sequence->q_begin) + __ldcg(&sequence->q_len));
  }
  __syncthreads();  // the sums are complete
  if (threadIdx.x != 0) return;
  header.faults = static_cast<unsigned long long>(faults);
  header.first_faulty = first_faulty;
  header.end_of_q = end_of_q;
}

TW_INLINE void order_all_rows(const PlanKernelArguments& arguments) {
  const PlanArguments& plan = arguments.plan;
  const int most_tiles = max((arguments.bounds.max_kv_len + kBlockKv - 1) / kBlockKv, 1);
  sum_up(plan, *plan.header);
  find_groups(arguments, *plan.header);
#pragma unroll 1
  for (int head = 0; head < plan.map.heads; ++head) order_rows(arguments, head, most_tiles);
}

}  // namespace tw_kernel
