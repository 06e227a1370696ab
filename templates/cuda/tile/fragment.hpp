#pragma once

#include "cuda/language.hpp"

// Which elements of an accumulator a lane owns, in mma.sync as in wgmma: rows l / 4 and l / 4 + 8 of
// every 16, and of every 8 columns 2 (l % 4) and the next. Four neighbouring lanes share a row.

namespace tw_kernel {

// A thread's column j is column_of(0) + column_offset(j).
TW_INLINE constexpr int column_offset(int j) {
  return j / 2 * 8 + j % 2;
}

constexpr int kLanesSharingRow = 4;
// A thread's number among the lanes that share its rows.
TW_INLINE int lane_of_row() {
  return static_cast<int>(threadIdx.x % kLanesSharingRow);
}

TW_INLINE float reduce_row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
TW_INLINE float reduce_row_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

}  // namespace tw_kernel
