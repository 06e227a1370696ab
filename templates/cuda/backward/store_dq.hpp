#pragma once

#include "abi/cuda_backward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/backward/dq_place.hpp"
#include "cuda/constants.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/convert.hpp"
#include "kernel/backward_engine.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// dQ of a dense call from its sums, a tile by each block of threads.

namespace tw_kernel {

using tilewright::abi::cuda::BackwardArguments;
using tilewright::abi::cuda::OneSweepArguments;
using tilewright::abi::cuda::RowFacts;

// Four lanes have a row of a part, of 8 columns; their other accumulators are of the row 8 after it.
TW_INLINE void read_dq_rows(const float* part, int row, float (&upper)[8], float (&lower)[8]) {
  const float* const from = part + dq_place(row * 4, 0);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float4 x = __ldg(reinterpret_cast<const float4*>(from + (kAddsFours ? 4 * i : dq_place(0, i))));
    const float four[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int of_lane = kAddsFours ? i : j, accumulator = kAddsFours ? j : i;
      (accumulator < 2 ? upper : lower)[2 * of_lane + accumulator % 2] = four[j];
    }
  }
}

// A row with nothing kept gets 0, whatever its sums are.
TW_INLINE void store_dq_row(const BackwardArguments& arguments, QElement* head, const RowFacts* facts, int row,
                            int column, const float (&sums)[8]) {
  const float scale = arguments.scale;
  const bool is_kept = facts[row].lse != kInfinity;
  unsigned words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    words[i] = is_kept ? pack<QElement>(sums[2 * i] * scale, sums[2 * i + 1] * scale) : 0;
  }
  *reinterpret_cast<int4*>(head + row * arguments.dq.row_stride + column) =
      int4{static_cast<int>(words[0]), static_cast<int>(words[1]), static_cast<int>(words[2]),
           static_cast<int>(words[3])};
}

TW_INLINE void store_dq(const OneSweepArguments& arguments, const SnippetArguments& call) {
  constexpr int kParts = KeyTile::kColumns / 8;  // of a row; what pads it is left out
  const int tiles = dq_tiles_of_head(call.q_len);
  const int head = static_cast<int>(blockIdx.x) / tiles, first = static_cast<int>(blockIdx.x) % tiles * kKvTile;
  const float* const sums = arguments.dq_sums + static_cast<long long>(blockIdx.x) * kDqTileFloats;
  const RowFacts* const facts = arguments.facts + static_cast<long long>(head) * arguments.facts_rows;
  QElement* const to =
      head_of<QElement>(arguments.dq, head / call.num_q_heads, head % call.num_q_heads);
#pragma unroll 1
  for (int id = threadIdx.x; id < kKvTile / 2 * kParts; id += tilewright::abi::cuda::kPlainThreads) {
    const int part = id % kParts, row_step = id / kParts / 8, row_of_part = id / kParts % 8;
    float upper[8], lower[8];
    read_dq_rows(sums + dq_part(row_step, part), row_of_part, upper, lower);
    const int row = first + row_step * 16 + row_of_part;
    if (row < call.q_len) store_dq_row(arguments, to, facts, row, part * 8, upper);
    if (row + 8 < call.q_len) store_dq_row(arguments, to, facts, row + 8, part * 8, lower);
  }
}

}  // namespace tw_kernel
