#pragma once

#include "cuda/language.hpp"
#include "cuda/mask/sum_before.hpp"

// Rows of tiles in buckets, by a block of threads.

namespace tw_kernel {

template <int kThreads>
constexpr int kSortBuckets = 4 * kThreads;

// Calls put(place, item) once for each item: places count up from 0, bucket by bucket, in any order inside
// a bucket. for_each(body) calls body(item) for this thread's items; bucket_of(item) is from 0 to
// kSortBuckets - 1. Both are called twice.
template <int kThreads, typename ForEach, typename BucketOf, typename Put>
TW_INLINE void counting_sort(const ForEach& for_each, const BucketOf& bucket_of, const Put& put) {
  __shared__ int sums[kThreads / 32];
  __shared__ int next[kSortBuckets<kThreads>];  // of each bucket: where its next item goes
#pragma unroll 1
  for (int i = threadIdx.x; i < kSortBuckets<kThreads>; i += kThreads) next[i] = 0;
  __syncthreads();  // buckets are empty
  for_each([&](auto... item) { atomicAdd(&next[bucket_of(item...)], 1); });
  __syncthreads();  // buckets hold their sizes
  int* const mine = next + 4 * threadIdx.x;
  const int4 size = {mine[0], mine[1], mine[2], mine[3]};
  const int begin = sum_before<kThreads>(size.x + size.y + size.z + size.w, sums);
  mine[0] = begin;
  mine[1] = begin + size.x;
  mine[2] = begin + size.x + size.y;
  mine[3] = begin + size.x + size.y + size.z;
  __syncthreads();  // buckets hold their begins
  for_each([&](auto... item) { put(atomicAdd(&next[bucket_of(item...)], 1), item...); });
}

}  // namespace tw_kernel
