#pragma once

// Sums over a block of threads.

namespace tw_kernel {

// The sum of x over the threads before this one, of kThreads. sums: [2 * kThreads] of shared memory
template <int kThreads>
__noinline__ long long sum_before(long long x, long long* sums) {
  const int thread = threadIdx.x;
  long long sum = x;
  int from = 0;
  sums[thread] = sum;
  __syncthreads();  // the first half holds every thread's x
#pragma unroll 1
  for (int distance = 1; distance < kThreads; distance *= 2) {
    if (thread >= distance) sum += sums[from + thread - distance];
    from = kThreads - from;
    sums[from + thread] = sum;
    __syncthreads();  // the other half is complete, and this one is no longer read
  }
  return sum - x;
}

}  // namespace tw_kernel
