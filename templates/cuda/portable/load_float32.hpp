#pragma once

#include "cuda/attention/strided_rows.hpp"
#include "cuda/language.hpp"
#include "cuda/portable/copy_floats.hpp"
#include "cuda/portable/float32.hpp"
#include "kernel/configuration.hpp"

// Rows of Q, K and V from global to shared memory, as floats.

namespace tw_kernel {

// Of the rows, the first `count` (of kRowCount) exist; the others become zeros.
template <int kRowCount, int kDim, int kPitch, typename Element, typename Rows>
TW_INLINE void load_tile(unsigned tile, const Rows& rows, int count) {
  constexpr int kChunks = kDim / 4;
#pragma unroll 2
  for (int id = threadIdx.x; id < kRowCount * kChunks; id += kThreads) {
    const int row = id / kChunks;
    const int column = id % kChunks * 4;
    const auto source = rows.from(row, column).read(row < count);
    copy_source(tile + (row * kPitch + column) * 4, source);
  }
}

TW_INLINE void load_q(unsigned tile, const QElement* rows, long long stride, int count) {
  load_tile<kQTile, kHeadDim, kHeadPitch, QElement>(tile, StridedRows<QElement>(rows, stride), count);
}
template <typename Rows>
TW_INLINE void load_k(unsigned tile, const Rows& rows, int count) {
  load_tile<kKvTile, kHeadDim, kHeadPitch, KvElement>(tile, rows, count);
}
template <typename Rows>
TW_INLINE void load_v(unsigned tile, const Rows& rows, int count) {
  load_tile<kKvTile, kValueDim, kValuePad, KvElement>(tile, rows, count);
}

}  // namespace tw_kernel
