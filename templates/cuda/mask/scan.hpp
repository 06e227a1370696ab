#pragma once

#include "abi/cuda_mask.hpp"
#include "cuda/language.hpp"
#include "cuda/mask/sum_before.hpp"

// From the counts of a block mask's tiles to the row offsets of its two CSR lists.

namespace tw_kernel {

using tilewright::abi::cuda::kMaskScanThreads;
using tilewright::abi::cuda::MaskArguments;

// Row offsets from the counts that stand in their places, by one block of threads: each thread sums
// a run of rows, and writes it once it knows what lies before. Full tiles follow all partial
// ones. Where there is no room for them all, the lists are left empty.
TW_INLINE void scan_rows(const MaskArguments& mask) {
  __shared__ long long sums[2][kMaskScanThreads / 32];
  __shared__ long long total[2];
  const long long rows = static_cast<long long>(mask.batch) * mask.heads * mask.rows_of_head;
  const long long run = (rows + kMaskScanThreads - 1) / kMaskScanThreads;
  const long long begin = min(rows, threadIdx.x * run);
  const long long end = min(rows, begin + run);
  long long partial = 0;
  long long full = 0;
#pragma unroll 2
  for (long long row = begin; row < end; ++row) {
    partial += mask.row_offsets[row + 1];
    full += mask.full_row_offsets[row + 1];
  }
  const long long partial_before = sum_before<kMaskScanThreads>(partial, sums[0]);
  const long long full_before = sum_before<kMaskScanThreads>(full, sums[1]);
  if (threadIdx.x == kMaskScanThreads - 1) {
    total[0] = partial_before + partial;
    total[1] = full_before + full;
    mask.totals->partial = total[0];
    mask.totals->full = total[1];
  }
  __syncthreads();  // total is there
  const bool fits = total[0] + total[1] <= mask.capacity;
  partial = partial_before;
  full = total[0] + full_before;
#pragma unroll 2
  for (long long row = begin; row < end; ++row) {
    partial += mask.row_offsets[row + 1];
    full += mask.full_row_offsets[row + 1];
    mask.row_offsets[row + 1] = fits ? partial : 0;
    mask.full_row_offsets[row + 1] = fits ? full : 0;
  }
  if (threadIdx.x == 0) {
    mask.row_offsets[0] = 0;
    mask.full_row_offsets[0] = fits ? total[0] : 0;
  }
}

}  // namespace tw_kernel
