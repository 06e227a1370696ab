// From the states and counts of a block mask's tiles to its two CSR lists, and the order in which
// its rows are best worked on.

namespace tw_kernel {

using tilewright::abi::cuda::kMaskScanThreads;

TW_INLINE int partial_in(unsigned long long count) {
  return static_cast<int>(count & 0xffffffffu);
}
TW_INLINE int full_in(unsigned long long count) {
  return static_cast<int>(count >> 32);
}

TW_INLINE long long mask_rows(const MaskArguments& mask) {
  return static_cast<long long>(mask.batch) * mask.heads * mask.q_blocks;
}

// The sum of x over the threads before this one. sums: [2 * kMaskScanThreads] of shared memory
TW_INLINE long long sum_before(long long x, long long* sums) {
  const int thread = threadIdx.x;
  long long sum = x;
  int from = 0;
  sums[thread] = sum;
  __syncthreads();  // the first half holds every thread's x
  for (int distance = 1; distance < kMaskScanThreads; distance *= 2) {
    if (thread >= distance) sum += sums[from + thread - distance];
    from = kMaskScanThreads - from;
    sums[from + thread] = sum;
    __syncthreads();  // the other half is complete, and this one is no longer read
  }
  return sum - x;
}

// Row offsets, by one block of threads: each thread sums a run of rows, and writes it once it knows
// what lies before.
TW_INLINE void scan_rows(const MaskArguments& mask) {
  __shared__ long long sums[2 * kMaskScanThreads];
  const long long rows = mask_rows(mask);
  const long long run = (rows + kMaskScanThreads - 1) / kMaskScanThreads;
  const long long begin = min(rows, threadIdx.x * run);
  const long long end = min(rows, begin + run);
  long long partial = 0;
  long long full = 0;
  for (long long row = begin; row < end; ++row) {
    partial += partial_in(mask.counts[row]);
    full += full_in(mask.counts[row]);
  }
  partial = sum_before(partial, sums);
  full = sum_before(full, sums);
  for (long long row = begin; row < end; ++row) {
    mask.row_offsets[row] = partial;
    mask.full_row_offsets[row] = full;
    partial += partial_in(mask.counts[row]);
    full += full_in(mask.counts[row]);
  }
  if (threadIdx.x == kMaskScanThreads - 1) {  // its run ends with the last row
    mask.row_offsets[rows] = partial;
    mask.full_row_offsets[rows] = full;
  }
}

// rows_by_cost of one head of the mask: a counting sort by cost, the costliest rows first. A
// partial tile costs a little more than a full one.
TW_INLINE void order_rows(const MaskArguments& mask, int head) {
  __shared__ long long sums[2 * kMaskScanThreads];
  __shared__ int next[kMaskScanThreads];  // of each bucket: where its next row goes
  const unsigned long long* counts = mask.counts + static_cast<long long>(head) * mask.q_blocks;
  int* const order = mask.rows_by_cost + static_cast<long long>(head) * mask.q_blocks;
  const auto bucket_of = [&](int row) {
    const long long cost = 5ll * partial_in(counts[row]) + 4ll * full_in(counts[row]);
    return kMaskScanThreads - 1 -
           static_cast<int>(cost * (kMaskScanThreads - 1) / (5ll * mask.kv_blocks));
  };
  next[threadIdx.x] = 0;
  __syncthreads();  // buckets are empty
  for (int row = threadIdx.x; row < mask.q_blocks; row += kMaskScanThreads) {
    atomicAdd(&next[bucket_of(row)], 1);
  }
  __syncthreads();  // buckets hold their sizes
  const int begin = static_cast<int>(sum_before(next[threadIdx.x], sums));
  next[threadIdx.x] = begin;
  __syncthreads();  // buckets hold their begins
  for (int row = threadIdx.x; row < mask.q_blocks; row += kMaskScanThreads) {
    order[atomicAdd(&next[bucket_of(row)], 1)] = row;
  }
}

// The sum of x over the lanes before this one.
TW_INLINE int sum_of_lanes_before(int x, int lane) {
  int sum = x;
  for (int distance = 1; distance < 32; distance *= 2) {
    const int other = __shfl_up_sync(~0u, sum, distance);
    if (lane >= distance) sum += other;
  }
  return sum - x;
}

// Lists the tiles of one row, by one warp: a lane takes a word of 16 tiles at a time.
TW_INLINE void fill_row(const MaskArguments& mask, long long row, int lane) {
  constexpr unsigned kLowBits = 0x55555555u;
  const unsigned* states = mask.states + row * mask.state_words;
  int* partial = mask.indices + mask.row_offsets[row];
  int* full = mask.full_indices + mask.full_row_offsets[row];
  for (int first = 0; first < mask.state_words; first += 32) {
    const int word = first + lane;
    const unsigned state = word < mask.state_words ? states[word] : 0;
    const int partial_count = __popc(state & kLowBits);    // kTilePartial is 01
    const int full_count = __popc(state >> 1 & kLowBits);  // kTileFull is 10
    const int partial_before = sum_of_lanes_before(partial_count, lane);
    const int full_before = sum_of_lanes_before(full_count, lane);
    int* to_partial = partial + partial_before;
    int* to_full = full + full_before;
    for (int i = 0; i < 16; ++i) {
      if (state >> 2 * i & 1u) *to_partial++ = word * 16 + i;
      if (state >> 2 * i & 2u) *to_full++ = word * 16 + i;
    }
    partial += __shfl_sync(~0u, partial_before + partial_count, 31);
    full += __shfl_sync(~0u, full_before + full_count, 31);
  }
}

TW_INLINE void fill_lists(const MaskArguments& mask) {
  const long long row = (blockIdx.x * static_cast<long long>(kMaskThreads) + threadIdx.x) / 32;
  if (row < mask_rows(mask)) fill_row(mask, row, threadIdx.x % 32);
}

}  // namespace tw_kernel
