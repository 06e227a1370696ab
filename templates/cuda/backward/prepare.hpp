#pragma once

#include "abi/cuda_backward.hpp"
#include "cuda/attention/place.hpp"
#include "cuda/backward/scene.hpp"
#include "cuda/constants.hpp"
#include "cuda/language.hpp"
#include "cuda/merge/chunk.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// What each row of q brings to its elements, found once for both sweeps.

namespace tw_kernel {

using tilewright::abi::cuda::BackwardArguments;
using tilewright::abi::cuda::RowFacts;

constexpr int kLanesOfRow = tilewright::abi::cuda::lanes_of_row(kValueDim, sizeof(OutElement));

// Of a thread's chunks of a row.
TW_INLINE float multiply_chunks(const OutElement* out, const OutElement* dout, int lane) {
  constexpr int kElements = kChunkElements<OutElement>;
  float sum = 0.0f;
  for (int column = lane * kElements; column < kValueDim; column += kLanesOfRow * kElements) {
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

// dout and dlse of a row with nothing kept count as 0.
TW_INLINE void prepare(const BackwardArguments& arguments, const SnippetArguments& call) {
  constexpr int kRowsOfBlock = tilewright::abi::cuda::kPlainThreads / kLanesOfRow;
  const int lane = threadIdx.x % kLanesOfRow;
  const long long index = static_cast<long long>(blockIdx.x) * kRowsOfBlock + threadIdx.x / kLanesOfRow;
  const long long head = index / arguments.facts_rows;
  const int row = static_cast<int>(index % arguments.facts_rows);
  const bool exists = head < static_cast<long long>(call.batch) * call.num_q_heads;
  const int b = static_cast<int>(head / call.num_q_heads), h = static_cast<int>(head % call.num_q_heads);
  const long long lse_row = head * call.q_len + row;
  const float lse = exists && row < call.q_len ? arguments.lse[lse_row] : -kInfinity;
  float delta = 0.0f;
  if (lse != -kInfinity) {
    delta = multiply_chunks(
        head_of<const OutElement>(arguments.out, b, h) + row * arguments.out.row_stride,
        head_of<const OutElement>(arguments.dout, b, h) + row * arguments.dout.row_stride, lane);
  }
#pragma unroll
  for (int i = 1; i < kLanesOfRow; i *= 2) delta += __shfl_xor_sync(~0u, delta, i);
  if (!exists || lane != 0) return;
  if (lse == -kInfinity) {
    arguments.facts[index] = {kInfinity, 0.0f};
  } else {
    const float dlse = arguments.dlse == nullptr ? 0.0f : arguments.dlse[lse_row];
    arguments.facts[index] = {lse_of_elements(lse), delta - dlse};
  }
}

}  // namespace tw_kernel
