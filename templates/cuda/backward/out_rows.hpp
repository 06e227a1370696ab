#pragma once

#include "abi/cuda_backward.hpp"
#include "cuda/backward/element_inputs.hpp"
#include "cuda/element.hpp"
#include "cuda/language.hpp"
#include "cuda/merge/chunk.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// Rows of out and dout, of kColumns, each of which some lanes share.

namespace tw_kernel {

template <int kColumns>
constexpr int kLanesOfRow = tilewright::abi::cuda::lanes_of_row(kColumns, sizeof(OutElement));

// Of a thread's chunks of a row, the last of which a padded head dim cuts.
template <int kColumns>
TW_INLINE float multiply_chunks(const OutElement* out, const OutElement* dout, int lane) {
  constexpr int kElements = kChunkElements<OutElement>;
  float sum = 0.0f;
  for (int column = lane * kElements; column < kColumns; column += kLanesOfRow<kColumns> * kElements) {
    if (kColumns % kElements != 0 && column + kElements > kColumns) {
      for (; column < kColumns; ++column) sum += to_float(out[column]) * to_float(dout[column]);
      break;
    }
    float a[kElements], b[kElements];
    load_chunk(out + column, kAligned, a);
    load_chunk(dout + column, kAligned, b);
#pragma unroll
    for (int i = 0; i < kElements; ++i) sum += a[i] * b[i];
  }
  return sum;
}

// A lse as elements take it: in units of their exponent, unless these are exact.
TW_INLINE float lse_of_elements(float lse) {
  return kExactSoftmax ? lse : lse * kLog2E;
}

}  // namespace tw_kernel
