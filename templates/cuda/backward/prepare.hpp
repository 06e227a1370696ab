#pragma once

#include "abi/cuda_backward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/backward/out_rows.hpp"
#include "cuda/constants.hpp"
#include "cuda/language.hpp"
#include "kernel/backward_engine.hpp"
#include "kernel/own_rows.hpp"
#include "kernel/configuration.hpp"

// What each row of q brings to its elements, found once for both sweeps.

namespace tw_kernel {

using tilewright::abi::cuda::RowFacts;

// dout and dlse of a row with nothing kept count as 0.
TW_INLINE void prepare(const BackwardArguments& arguments, const SnippetArguments& call) {
  constexpr int kColumns = ValueTile::kColumns, kLanes = kLanesOfRow<kColumns>;
  constexpr int kRowsOfBlock = tilewright::abi::cuda::kPlainThreads / kLanes;
  const int lane = threadIdx.x % kLanes;
  const long long index = static_cast<long long>(blockIdx.x) * kRowsOfBlock + threadIdx.x / kLanes;
  const long long head = index / arguments.facts_rows;
  const int row = static_cast<int>(index % arguments.facts_rows);
  const bool exists = head < heads_of_call(call);
  const int b = static_cast<int>(head / call.num_q_heads), h = static_cast<int>(head % call.num_q_heads);
  const long long lse_row = head * call.q_len + row;
  const float lse = exists && row < call.q_len ? arguments.lse[lse_row] : -kInfinity;
  float delta = 0.0f;
  if (lse != -kInfinity) {
    delta = multiply_chunks<kColumns>(
        head_of<const OutElement>(arguments.out, b, h) + row * arguments.out.row_stride,
        head_of<const OutElement>(arguments.dout, b, h) + row * arguments.dout.row_stride, lane);
  }
#pragma unroll
  for (int i = 1; i < kLanes; i *= 2) delta += __shfl_xor_sync(~0u, delta, i);
  if (!exists || lane != 0) return;
  if (lse == -kInfinity) {
    arguments.facts[index] = {kInfinity, 0.0f};
  } else {
    const float dlse = arguments.dlse == nullptr ? 0.0f : arguments.dlse[lse_row];
    arguments.facts[index] = {lse_of_elements(lse), delta - dlse};
  }
}

}  // namespace tw_kernel
