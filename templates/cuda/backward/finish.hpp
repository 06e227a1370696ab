#pragma once

#include "abi/cuda_backward.hpp"
#include "cuda/backward/sums.hpp"
#include "cuda/element.hpp"
#include "cuda/float16.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/convert.hpp"

// Gradients of a buffer or a scalar, from their sums to the caller's tensor.

namespace tw_kernel {

using tilewright::abi::cuda::FinishArguments;

// The cell of a dense array as an element of a tensor of the same extents.
TW_INLINE long long element_of(const FinishArguments& arguments, long long cell) {
  long long element = 0;
#pragma unroll
  for (int dim = 4; dim >= 0; --dim) {
    element += cell % arguments.size[dim] * arguments.stride[dim];
    cell /= arguments.size[dim];
  }
  return element;
}

TW_INLINE void finish(const FinishArguments& arguments) {
  const long long step = static_cast<long long>(gridDim.x) * tilewright::abi::cuda::kPlainThreads;
  long long cell =
      static_cast<long long>(blockIdx.x) * tilewright::abi::cuda::kPlainThreads + threadIdx.x;
  for (; cell < arguments.cells; cell += step) {
    const float sum = arguments.sums.bins != nullptr
                          ? exact_sum(arguments.sums.bins + cell * kSumBins)
                          : arguments.sums.sums[cell];
    const long long element = element_of(arguments, cell);
    if (arguments.type == tilewright::abi::cuda::kSumsF16) {
      from_float(sum, static_cast<Half*>(arguments.data) + element);
    } else if (arguments.type == tilewright::abi::cuda::kSumsBF16) {
      from_float(sum, static_cast<BFloat16*>(arguments.data) + element);
    } else {
      static_cast<float*>(arguments.data)[element] = sum;
    }
  }
}

}  // namespace tw_kernel
