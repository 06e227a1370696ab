#pragma once

#include "cuda/hopper/backward/layout.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "kernel/configuration.hpp"

// A warp's terms of 64 rows of q, summed by the difference of their indices: that of row r of its 16 and
// column c of the 64 is r - c. Terms that lie 8 rows and 8 columns apart have the same, so a thread sums
// those in registers. A lane's others lie in the warp's own shared memory as
//
//   [t = c % 8][x = r % 8 + 8 * (r / 8 - c / 8 + 7) + 7]        r - c = x - t - 63
//
// where the terms of one difference are at t * (kDiagonalPitch + 1) from its first: lanes store, and read,
// words of 32 banks.

namespace tw_kernel {

constexpr int kDiagonalGroups = kDiagonalRows / 16;
constexpr int kDifferences = 16 + kDiagonalRows - 1;
constexpr int kLeastDifference = 1 - kDiagonalRows;
constexpr int kDiagonalRounds = (kDifferences + 31) / 32;

class Diagonals {
 public:
  // terms: of all warps that compute
  __forceinline__ explicit Diagonals(unsigned terms)
      : terms_(terms + consumer_thread() / 32 * kWarpDiagonalBytes),
        own_(terms_ + (lane() % 4 * 2 * kDiagonalPitch + lane() / 4 + 7) * 4) {}

  // No term is ever stored where rows of 8 end.
  __forceinline__ void clear() const {
#pragma unroll 1
    for (unsigned i = lane() * 4; i < kWarpDiagonalBytes; i += 32 * 4) store_shared(terms_ + i, 0.0f);
    __syncwarp();
  }

  // A place for a float of the lane, where rows of 8 end: 0 after clear().
  __forceinline__ unsigned place_of_lane() const {
    return terms_ + (lane() / 4 * kDiagonalPitch + kDiagonalPlaces + lane() % 4) * 4;
  }

  // Groups of 16 columns, in turn. apart: differences are summed apart, else a lane's terms together.
  __forceinline__ void add(bool apart, int group, const float (&terms)[kRows][4]) {
    const int step = kDiagonalGroups * 2 - 1 - group * 2;
    if (!apart) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float sum = (terms[0][e] + terms[1][e]) + (terms[0][2 + e] + terms[1][2 + e]);
        left_[e] = group == 0 ? sum : left_[e] + sum;
      }
      return;
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      put(e, step + 1, group == 0 ? terms[1][e] : left_[e] + terms[1][e]);
      put(e, step, terms[0][e] + terms[1][2 + e]);
      left_[e] = terms[0][2 + e];
      if (group == kDiagonalGroups - 1) put(e, 0, left_[e]);
    }
  }

  // Of the lane, where they were summed together.
  __forceinline__ float total() const { return left_[0] + left_[1]; }

  // Of differences kLeastDifference + 32 * i + lane, the last of them more than there are.
  __forceinline__ void sum(float (&sums)[kDiagonalRounds]) const {
    __syncwarp();  // all terms are there
#pragma unroll
    for (int i = 0; i < kDiagonalRounds; ++i) {
      const int place = min(i * 32 + static_cast<int>(lane()), kDifferences - 1);
      sums[i] = 0.0f;
#pragma unroll
      for (int t = 0; t < 8; ++t) sums[i] += load_shared(terms_ + (place + t * (kDiagonalPitch + 1)) * 4);
    }
    __syncwarp();  // they were read
  }

 private:
  __forceinline__ void put(int e, int step, float x) const {
    store_shared(own_ + (e * kDiagonalPitch + step * 8) * 4, x);
  }

  unsigned terms_;  // of the warp
  unsigned own_;    // where the thread stores
  float left_[2];   // what the next group adds to: of the group before, or of all of them where summed together
};

}  // namespace tw_kernel
