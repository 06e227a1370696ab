#pragma once

#include "abi/cuda_mask.hpp"
#include "cuda/language.hpp"
#include "cuda/mask/counting_sort.hpp"
#include "cuda/mask/rows.hpp"
#include "cuda/ptx/special_functions.hpp"
#include "kernel/configuration.hpp"

// From the states of a row's tiles to its parts of the mask's two CSR lists, and the order in which
// rows are best worked on.

namespace tw_kernel {

// q_tile_order of one head of the mask: a counting sort by cost, the costliest first. A partial tile
// costs a little more than a full one. A q tile that covers rows of several blocks visits what any of
// them lists: it is taken to cost as much as the costliest.
TW_INLINE void order_rows(const MaskArguments& mask, int head, int q_len) {
  constexpr int kBuckets = kSortBuckets<kMaskThreads>;
  const int rows = mask.rows_of_head;
  const int ordered_rows = mask.ordered_rows;
  const int items = q_len / ordered_rows + static_cast<int>(q_len % ordered_rows != 0);
  const long long* partial = mask.row_offsets + static_cast<long long>(head) * rows;
  const long long* full = mask.full_row_offsets + static_cast<long long>(head) * rows;
  int* const order = mask.q_tile_order + static_cast<long long>(head) * rows;
  // A cost is at most 5 * columns, below 2^31. Roundings make its product with the scale greater by
  // less than 2^-20 of it, so it stays below kBuckets; and it never falls where the cost rises.
  const float scale = (kBuckets - 1) * tw_math::reciprocal(5.0f * static_cast<float>(mask.columns));
  const auto bucket_of = [&](int item) {
    const int first = item * ordered_rows;  // below 2^31, as lengths end at 2^31 - 1025
    const int last_row = min((first + ordered_rows - 1) / kBlockQ, rows - 1);
    int cost = 0;
#pragma unroll 1
    for (int row = first / kBlockQ; row <= last_row; ++row) {
      cost = max(cost, static_cast<int>(5 * (partial[row + 1] - partial[row]) +
                                        4 * (full[row + 1] - full[row])));
    }
    return kBuckets - 1 - static_cast<int>(static_cast<float>(cost) * scale);
  };
  const auto for_each_item = [&](const auto& body) {
#pragma unroll 1
    for (int item = threadIdx.x; item < items; item += kMaskThreads) body(item);
  };
  counting_sort<kMaskThreads>(for_each_item, bucket_of,
                              [&](int place, int item) { order[place] = item; });
}

// The sum of x over the lanes before this one.
TW_INLINE int sum_of_lanes_before(int x, int lane) {
  int sum = x;
#pragma unroll 1
  for (int distance = 1; distance < 32; distance *= 2) {
    const int other = __shfl_up_sync(~0u, sum, distance);
    if (lane >= distance) sum += other;
  }
  return sum - x;
}

// Lists the tiles of one chunk, a lane for each tile of a span, unless partial is null. Returns the
// chunk's counts.
TW_INLINE int2 fill_chunk(const ChunkMemory& memory, int first_tile, int* partial, int* full,
                          int2* sums) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const SpanStates states = memory.spans[threadIdx.x];
  const int2 count = {__popc(states.partial), __popc(states.full)};
  static_assert(32 * kSpan < 1 << 16, "two sums over a warp fit in one int");
  const int both = sum_of_lanes_before(count.y << 16 | count.x, lane);
  int2 before = {both & 0xffff, both >> 16};
  if (lane == 31) sums[warp] = {before.x + count.x, before.y + count.y};
  __syncthreads();  // sums is complete
  int2 all = {0, 0};
#pragma unroll 1
  for (int i = 0; i < kWarps; ++i) {
    if (i < warp) before = {before.x + sums[i].x, before.y + sums[i].y};
    all = {all.x + sums[i].x, all.y + sums[i].y};
  }
  const unsigned below = (1u << lane) - 1;
  const bool lists = partial != nullptr && (states.partial | states.full) != 0;
#pragma unroll 1
  for (unsigned spans = __ballot_sync(~0u, lists); spans != 0; spans &= spans - 1) {
    const int i = __ffs(spans) - 1;
    const unsigned in_partial = __shfl_sync(~0u, states.partial, i);
    const unsigned in_full = __shfl_sync(~0u, states.full, i);
    int* const to_partial = partial + __shfl_sync(~0u, before.x, i);
    int* const to_full = full + __shfl_sync(~0u, before.y, i);
    const int tile = first_tile + (warp * 32 + i) * kSpan + lane;
    if (in_partial >> lane & 1u) to_partial[__popc(in_partial & below)] = tile;
    if (in_full >> lane & 1u) to_full[__popc(in_full & below)] = tile;
  }
  __syncthreads();  // memory and sums may be used again
  return all;
}

// Counts or lists the tiles of a row, which is a block of threads. One kernel does both, as all
// that they share takes long to compile. To list them all proofs are made once more: that takes
// less than to keep them.
template <bool kProve>
TW_INLINE void work_on_row(const MaskArguments& mask, const SnippetArguments& call,
                           long long row_number) {
  __shared__ ChunkMemory memory;
  __shared__ int2 sums[kWarps];
  const bool fills = mask.fills != 0;
  long long partial = fills ? mask.row_offsets[row_number] : 0;
  long long full = fills ? mask.full_row_offsets[row_number] : 0;
  if (fills && partial == mask.row_offsets[row_number + 1] &&
      full == mask.full_row_offsets[row_number + 1]) {
    return;
  }
  const Row row(mask, call, static_cast<int>(row_number));  // below 2^31, as a launch has no more
  unsigned long long evaluated = 0;
#pragma unroll 1
  for (int chunk = 0; chunk < mask.chunks; ++chunk) {
    const long long place = row_number * mask.chunks + chunk;
    const int saved = fills ? mask.saved_begin[place] : -1;
    const int open = row.classify<kProve>(memory, chunk, saved < 0 ? nullptr : mask.saved + saved);
    if (!fills) {
      if (open > 0) evaluated += memory.open_tile_count;
      save_chunk(mask, memory, place, open);
    }
    const int2 count =
        fill_chunk(memory, chunk * kMaskSpans * kSpan, fills ? mask.indices + partial : nullptr,
                   fills ? mask.indices + full : nullptr, sums);
    partial += count.x;
    full += count.y;
  }
  if (fills || threadIdx.x != 0) return;
  mask.row_offsets[row_number + 1] = partial;
  mask.full_row_offsets[row_number + 1] = full;
  if (evaluated > 0) atomicAdd(&mask.totals->evaluated, evaluated);
}

}  // namespace tw_kernel
