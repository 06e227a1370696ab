#pragma once

#include "cuda/attention/strided_rows.hpp"
#include "cuda/language.hpp"
#include "cuda/portable/float32.hpp"
#include "cuda/portable/row_elements.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "kernel/configuration.hpp"

// load_float32.hpp for rows that have fewer columns than a tile's: the columns after them become zeros.

namespace tw_kernel {

// Of the rows, the first `count` (of kRowCount) exist; the others become zeros.
template <int kRowCount, int kDim, int kColumnsOfRow, int kPitch, typename Rows>
TW_INLINE void load_tile(unsigned tile, const Rows& rows, int count) {
  constexpr int kChunks = kDim / 4;
#pragma unroll 1
  for (int id = threadIdx.x; id < kRowCount * kChunks; id += kThreads) {
    const int row = id / kChunks;
    const int column = id % kChunks * 4;
    const auto source = rows.from(row, column).read(row < count && column < kColumnsOfRow);
    unsigned bits[4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (source.is_present && column + i < kColumnsOfRow) bits[i] = __float_as_uint(float_of(source, i));
    }
    store_shared_16(tile + (row * kPitch + column) * 4, bits[0], bits[1], bits[2], bits[3]);
  }
}

TW_INLINE void load_q(unsigned tile, const QElement* rows, long long stride, int count) {
  load_tile<kQTile, kHeadDim, kHeadColumns, kHeadPitch>(tile, StridedRows<QElement>(rows, stride), count);
}
template <typename Rows>
TW_INLINE void load_k(unsigned tile, const Rows& rows, int count) {
  load_tile<kKvTile, kHeadDim, kHeadColumns, kHeadPitch>(tile, rows, count);
}
template <typename Rows>
TW_INLINE void load_v(unsigned tile, const Rows& rows, int count) {
  load_tile<kKvTile, kValueDim, kValueColumns, kValuePad>(tile, rows, count);
}

}  // namespace tw_kernel
