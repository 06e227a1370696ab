#pragma once

#include "cuda/language.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/tile/fragment.hpp"

// Threads of a block whose first warpgroup brings tiles, and which rows and columns of a warpgroup's 64 rows of
// scores a thread of the others has (fragment.hpp): a warp owns 16 rows.

namespace tw_kernel {

constexpr int kWarpgroup = 128;  // threads
constexpr int kRows = 2;         // of a thread

TW_INLINE unsigned lane() {
  return threadIdx.x % 32;
}
// Among the threads that compute.
TW_INLINE unsigned consumer_thread() {
  return threadIdx.x - kWarpgroup;
}
TW_INLINE constexpr int row_offset(int i) {
  return i * 8;
}
TW_INLINE int row_of(int i) {
  const unsigned thread = consumer_thread();
  return static_cast<int>(thread / 32 * 16 + thread % 32 / 4) + row_offset(i);
}
TW_INLINE int column_of(int j) {
  return static_cast<int>(lane() % 4 * 2) + column_offset(j);
}

// The calling warp is done with a place: all of its lanes have read what they wanted.
TW_INLINE void release(unsigned long long& empty) {
  __syncwarp();
  if (lane() == 0) arrive(shared_address(&empty));
}
// Where `done`, without a branch.
TW_INLINE void release_if(bool done, unsigned long long& empty) {
  __syncwarp();
  arrive_if(done && lane() == 0, shared_address(&empty));
}

}  // namespace tw_kernel
