#pragma once

#include "cuda/hopper/threads.hpp"
#include "cuda/ptx/add_float.hpp"
#include "cuda/ptx/shared_memory.hpp"

// A clamped index maps most terms of a call to its first and its last cell. A warp waits at a cell: its lanes keep what
// they would add there, and add the total to memory when the warp moves.

namespace tw_kernel {

class WaitingSum {
 public:
  // Each lane's terms to its own cells of `sums`. The warp moves to the cell that all lanes' first terms have. No
  // branch, as in add_float_if.
  // place: where the lane's sum lies in shared memory, 0 at first
  template <int kCount>
  __forceinline__ void add(unsigned place, float* sums, const long long (&cells)[kCount],
                           const float (&terms)[kCount]) {
    const long long first = __shfl_sync(~0u, cells[0], 0);
    const bool moves = first != cell_ && __all_sync(~0u, cells[0] == first) != 0;
    const long long cell_before = cell_;
    cell_ = moves ? first : cell_;
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const bool waits = cells[i] == cell_;
      if (waits) sum += terms[i];
      add_float_if(!waits && terms[i] != 0.0f, sums + cells[i], terms[i]);
    }
    const float sum_before = load_shared(place);
    add_float_if(moves && sum_before != 0.0f, sums + cell_before, sum_before);
    store_shared(place, moves ? sum : sum_before + sum);
  }

  // A term of each lane to the cell that all of them have.
  __forceinline__ void add_to_one(unsigned place, float* sums, long long cell, float term) {
    const bool moves = cell != cell_;
    const float sum_before = load_shared(place);
    add_float_if(moves && sum_before != 0.0f, sums + cell_, sum_before);
    store_shared(place, moves ? term : sum_before + term);
    cell_ = cell;
  }

  __forceinline__ void end(unsigned place, float* sums) const {
    float sum = load_shared(place);
#pragma unroll
    for (int i = 1; i < 32; i *= 2) sum += __shfl_xor_sync(~0u, sum, i);
    add_float_if(lane() == 0 && sum != 0.0f, sums + cell_, sum);
    store_shared(place, 0.0f);
  }

 private:
  long long cell_ = 0;  // at which the warp waits
};

}  // namespace tw_kernel
