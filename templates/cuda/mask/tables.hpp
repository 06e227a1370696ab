#pragma once

#include "abi/cuda_mask.hpp"
#include "abi/extrema.hpp"
#include "cuda/element.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"

// Makes the tables that the interval interpretation reads (abi/extrema.hpp).

namespace tw_kernel {

using tilewright::abi::cuda::kMaskThreads;

template <typename Number>
struct Extrema {
  Number least;
  Number greatest;

  __forceinline__ void add(Extrema other) {
    least = ::min(least, other.least);
    greatest = ::max(greatest, other.greatest);
  }
  // Those of all lanes.
  __forceinline__ void add_lanes() {
#pragma unroll 1
    for (int distance = 16; distance > 0; distance /= 2) {
      add({__shfl_xor_sync(~0u, least, distance), __shfl_xor_sync(~0u, greatest, distance)});
    }
  }
};

// One block of threads: kExtremaFan^2 runs of one row of a table, and what lies above them.
template <typename Element, typename Number, int kRank, typename Buffer>
TW_INLINE void make_table(const Buffer& buffer, void* table) {
  using namespace tilewright::abi;
  constexpr int kRun = extrema_run(kBlockQ, kBlockKv);
  constexpr int kFan = kExtremaFan;
  static_assert(kMaskThreads / 32 == kFan, "a warp makes one entry of the second level");
  __shared__ Extrema<Number> of_warp[kFan];
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int extent = buffer.size[kRank - 1];
  const int runs = static_cast<int>(extrema_runs(extent, kRun));
  const int blocks = static_cast<int>(extrema_runs(runs, kFan * kFan));
  const int block = blockIdx.x % blocks;
  const int row = blockIdx.x / blocks;
  long long offset = 0;
  int rest = row;
  for (int dim = kRank - 2; dim >= 0; --dim) {
    offset += rest % buffer.size[dim] * buffer.stride[dim];
    rest /= buffer.size[dim];
  }
  const Element* data = static_cast<const Element*>(buffer.data) + offset;
  const long long stride = buffer.stride[kRank - 1];
  Extrema<Number>* entries =
      static_cast<Extrema<Number>*>(table) + row * extrema_per_row(extent, kRun);
  const auto at = [&](int i) {
    return static_cast<Number>(to_number(load_read_only(data + min(i, extent - 1) * stride)));
  };

  const int first_run = (block * kFan + warp) * kFan;
  Extrema<Number> of_runs = {at(first_run * kRun), at(first_run * kRun)};
#pragma unroll 2
  for (int i = 0; i < kFan; ++i) {
    const int run = first_run + i;
    const Number first = at(run * kRun + lane % kRun);
    Extrema<Number> all = {first, first};
    for (int j = lane + 32; j < kRun; j += 32) {
      const Number value = at(run * kRun + j);
      all.add({value, value});
    }
    all.add_lanes();
    if (run < runs) {
      if (lane == 0) entries[run] = all;
      of_runs.add(all);
    }
  }
  const int upper = static_cast<int>(extrema_runs(runs, kFan));
  if (lane == 0) {
    of_warp[warp] = of_runs;
    if (first_run < runs) entries[runs + block * kFan + warp] = of_runs;
  }
  __syncthreads();  // of_warp is complete
  if (threadIdx.x != 0) return;
#pragma unroll 1
  for (int i = 1; i < kFan; ++i) of_runs.add(of_warp[i]);
  entries[runs + upper + block] = of_runs;
}

}  // namespace tw_kernel
