#pragma once

// Sums over a block of threads.

namespace tw_kernel {

// The sum of x over the threads before this one, of kThreads. sums: [kThreads / 32] of shared memory,
// for this sum alone until the next barrier
template <int kThreads, typename Number>
__noinline__ Number sum_before(Number x, Number* sums) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  Number sum = x;
#pragma unroll 1
  for (int distance = 1; distance < 32; distance *= 2) {
    const Number other = __shfl_up_sync(~0u, sum, distance);
    if (lane >= distance) sum += other;
  }
  if (lane == 31) sums[warp] = sum;
  __syncthreads();  // sums holds each warp's
#pragma unroll 4
  for (int i = 0; i < kThreads / 32; ++i) {
    if (i < warp) sum += sums[i];
  }
  return sum - x;
}

}  // namespace tw_kernel
