#pragma once

#include "abi/cuda_backward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/backward/dq_tile.hpp"
#include "cuda/hopper/backward/layout.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/convert.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"
#include "kernel/hopper_backward_rows.hpp"

// dQ from its sums, a tile by each block of threads.

namespace tw_kernel {

// Pairs of a row are so many words apart that rows of a warp's stores lie in different banks.
constexpr int kDqPitch = kHeadWidth / 2 + 4;

// staged: [kKvTile][kDqPitch] pairs of elements
TW_INLINE void stage_dq(const float4* sums, float scale, unsigned* staged) {
  constexpr int kVectors = kDqBytes / 16;
#pragma unroll 4
  for (int id = threadIdx.x; id < kVectors; id += tilewright::abi::cuda::kPlainThreads) {
    constexpr int kOfPart = kDqPartBytes / 16;
    const DqPlace place = dq_place(id / kOfPart, id % kOfPart / kWarpgroup, id % kWarpgroup);
    const float4 x = __ldg(sums + id);
    unsigned* const to = staged + place.row * kDqPitch + place.column / 2;
    to[0] = pack<QElement>(x.x * scale, x.y * scale);
    to[8 * kDqPitch] = pack<QElement>(x.z * scale, x.w * scale);
  }
}

TW_INLINE void store_dq(const BackwardArguments& arguments, const HopperBackwardArguments& tiles,
                        const SnippetArguments& call, unsigned* staged) {
  const long long number = blockIdx.x;
  if (!has_dq_tile(tiles, number)) return;
  stage_dq(reinterpret_cast<const float4*>(tiles.dq_sums + number * (kDqBytes / 4)), tiles.scale, staged);
  __syncthreads();  // the tile is staged
  const DqTile tile = find_dq_tile(tiles, call, number);
  QElement* const to = head_of<QElement>(arguments.dq, tile.b, tile.h);
  constexpr int kChunks = kHeadDim / 8;
#pragma unroll 1
  for (int id = threadIdx.x; id < kKvTile * kChunks; id += tilewright::abi::cuda::kPlainThreads) {
    const int row = id / kChunks, chunk = id % kChunks;
    if (tile.first + row >= tile.end) continue;
    *reinterpret_cast<int4*>(to + (tile.first + row) * arguments.dq.row_stride + chunk * 8) =
        *reinterpret_cast<const int4*>(staged + row * kDqPitch + chunk * 4);
  }
}

}  // namespace tw_kernel
