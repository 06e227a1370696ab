#pragma once

#include "abi/merge.hpp"
#include "attention/merge_weights.hpp"
#include "cuda/language.hpp"
#include "cuda/merge/chunk.hpp"
#include "kernel/configuration.hpp"

// The parts of rows. Lanes of one warp share a row, kElementsOfLane each; they read every part before they write, and
// lse is written when all have read the parts' lse, so that out and lse may be a part's.

namespace tw_kernel {

TW_INLINE void merge_chunk(const MergeArguments& call, const tilewright::abi::MergedPlace& place,
                           const MergedRow& row, float inverse, long long index, int column) {
  float sum[kElementsOfLane] = {};
#pragma unroll 4
  for (int i = 0; i < call.count; ++i) {
    const float lse = call.parts[i].lse[index];
    if (is_empty(lse)) continue;
    const tilewright::abi::MergeTensor& out = call.parts[i].out;
    float values[kElementsOfLane];
    load_chunk(static_cast<const OutElement*>(out.data) + tilewright::abi::offset_of(out, place) + column,
               call.is_aligned != 0, values);
    const float weight = weight_of(lse, row.max) * inverse;
#pragma unroll
    for (int k = 0; k < kElementsOfLane; ++k) sum[k] += weight * values[k];
  }
  store_chunk(sum, call.is_aligned != 0,
              static_cast<OutElement*>(call.out.data) + tilewright::abi::offset_of(call.out, place) + column);
}

TW_INLINE void merge(const MergeArguments& call) {
  constexpr int kThreads = tilewright::abi::kMergeThreads;
  const int lanes = 1 << call.lane_bits;
  const unsigned index =
      blockIdx.x * static_cast<unsigned>(kThreads >> call.lane_bits) + (threadIdx.x >> call.lane_bits);
  const int lane = threadIdx.x & (lanes - 1);
  const bool exists = index < call.all_rows;
  MergedRow row = {};
  if (exists) {
    row = merged_row(call, index);
    const tilewright::abi::MergedPlace place = tilewright::abi::merged_place(call, index);
    const float inverse = 1.0f / row.sum;
    for (int column = lane * kElementsOfLane; column < call.width; column += lanes * kElementsOfLane) {
      merge_chunk(call, place, row, inverse, index, column);
    }
  }
  __syncwarp();
  if (exists && lane == 0 && call.lse != nullptr) call.lse[index] = row.lse();
}

}  // namespace tw_kernel
