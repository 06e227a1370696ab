#pragma once

#include "cuda/hopper/threads.hpp"
#include "cuda/ptx/add_float.hpp"

// A clamped index maps most terms of a call to its first and its last cell. A warp whose lanes all have the same cell
// accumulates their sums, and adds the total to memory when the cell changes.

namespace tw_kernel {

class WaitingSum {
 public:
  // Each lane's sum to its own cell of `sums`, where `adds`. No branch, as in add_float_if.
  __forceinline__ void add(bool adds, float* sums, long long cell, float sum) {
    const long long cell_of_first = __shfl_sync(~0u, cell, 0);
    const bool is_one_cell = __all_sync(~0u, !adds || cell == cell_of_first) != 0;
    const bool joins = is_one_cell && cell_of_first == cell_;
    const float of_all = of_warp(adds ? sum : 0.0f);
    add_float_if(is_one_cell && !joins && lane() == 0 && sum_ != 0.0f, sums + cell_, sum_);
    add_float_if(!is_one_cell && adds && sum != 0.0f, sums + cell, sum);
    sum_ = joins ? sum_ + of_all : is_one_cell ? of_all : sum_;
    cell_ = is_one_cell ? cell_of_first : cell_;
  }

  __forceinline__ void end(float* sums) {
    add_float_if(lane() == 0 && sum_ != 0.0f, sums + cell_, sum_);
    sum_ = 0.0f;
  }

 private:
  static __forceinline__ float of_warp(float sum) {
#pragma unroll
    for (int i = 1; i < 32; i *= 2) sum += __shfl_xor_sync(~0u, sum, i);
    return sum;
  }

  long long cell_ = 0;
  float sum_ = 0.0f;  // the warp's: all lanes have it
};

}  // namespace tw_kernel
