#pragma once

#include "cuda/attention/softmax.hpp"
#include "cuda/constants.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/special_functions.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// The warps of a block have each seen other columns of an item. Their rows of O become one row, whose
// columns the block adds up a few at a time.

namespace tw_kernel {

// Of a row: the greatest score, and the sum of weights relative to it.
struct RowEnd {
  float max;
  float sum;
};

// What a weight relative to `max` is to be multiplied by where `greatest` is the maximum.
TW_INLINE float weight_of(float max, float greatest, float to_log2) {
  return max == -kInfinity ? 0.0f : tw_math::exp2((max - greatest) * to_log2);
}

// A pass has four rows of up to 128 columns, one float4 for each of 128 threads.
constexpr int kRowsOfPass = 4;
constexpr int kColumnsOfPass = kValuePad <= 128 ? kValuePad : kValuePad / 2;
constexpr int kPassStride = kColumnsOfPass + 4;  // rows begin in different banks

// The warps' rows of a tile, in shared memory.
struct SumsOfWarps {
  RowEnd (*ends)[kQTile];                      // [kTeams][kQTile]
  float (*rows)[kRowsOfPass][kPassStride];     // [kTeams][kRowsOfPass][kPassStride], of a pass
  float to_log2;

  __forceinline__ float greatest(int row) const {
    float max = -kInfinity;
#pragma unroll
    for (int i = 0; i < kTeams; ++i) max = fmaxf(max, ends[i][row].max);
    return max;
  }

  __forceinline__ RowEnd end_of_row(int row) const {
    RowEnd end = {greatest(row), 0.0f};
#pragma unroll
    for (int i = 0; i < kTeams; ++i) {
      end.sum += ends[i][row].sum * weight_of(ends[i][row].max, end.max, to_log2);
    }
    return end;
  }
};

// Calls store(row, column, o, end) for four columns of each of the first `count` rows: `o` is the sum over
// all warps relative to end.max. By all threads of the block; `out` is changed. Each row's columns come in
// passes; the code that adds them up stands there once, as it is cold.
template <typename Store>
TW_INLINE void sum_warps(const Softmax& softmax, const SumsOfWarps& sums, int count, int team,
                         float (&out)[kRows][kOutColumns], const Store& store) {
  constexpr int kChunks = kValuePad / kColumnsOfPass;
  constexpr int kOfChunk = kColumnsOfPass / 4;  // columns of a thread
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float sum = row_sum(softmax, i);
    if (lane() % 4 == 0) sums.ends[team][row_of(i)] = {softmax.max[i], sum};
  }
  __syncthreads();  // the warps' ends are there
#pragma unroll 1
  for (int pass = 0; pass / kChunks * kRowsOfPass < count; ++pass) {
    const int first_row = pass / kChunks * kRowsOfPass, chunk = pass % kChunks;
#pragma unroll
    for (int i = 0; i < kRows * kChunks; ++i) {
      const int row = row_of(i / kChunks) - first_row;
      if (i % kChunks != chunk || row < 0 || row >= kRowsOfPass) continue;
      const float weight =
          weight_of(softmax.max[i / kChunks], sums.greatest(first_row + row), sums.to_log2);
#pragma unroll
      for (int j = 0; j < kOfChunk; ++j) {
        sums.rows[team][row][out_column_of(j)] =
            out[i / kChunks][i % kChunks * kOfChunk + j] * weight;
      }
    }
    __syncthreads();  // all warps' rows are there
#pragma unroll 1
    for (int id = threadIdx.x; id < kRowsOfPass * kOfChunk; id += kBlockThreads) {
      const int row = id / kOfChunk, column = id % kOfChunk * 4;
      if (first_row + row >= count) continue;
      float4 o = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
      for (int warp = 0; warp < kTeams; ++warp) {
        const float* const from = &sums.rows[warp][row][column];
        o = {o.x + from[0], o.y + from[1], o.z + from[2], o.w + from[3]};
      }
      store(first_row + row, chunk * kColumnsOfPass + column, o, sums.end_of_row(first_row + row));
    }
    __syncthreads();  // no thread reads the sums any more
  }
}

}  // namespace tw_kernel
