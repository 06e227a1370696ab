#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/element.hpp"
#include "cuda/language.hpp"
#include "cuda/store/row_ends.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// Rows of the output from registers to global memory.

namespace tw_kernel {

// row: [kValueDim] of out
TW_INLINE void store_row(const float (&out)[kOutColumns], float factor, bool empty,
                         OutElement* row) {
#pragma unroll
  for (int j = 0; j < kOutColumns; j += 2) {
    const int column = out_column_of(j);
    if (kValueDim != kValuePad && column >= kValueDim) continue;
    // Nothing kept: 0 whatever V holds. A NaN sum is no empty row and stays.
    const float a = empty ? 0.0f : out[j] * factor;
    const float b = empty ? 0.0f : out[j + 1] * factor;
    if (kAligned) {
      store_pair(a, b, row + column);
    } else {
      from_float(a, row + column);
      from_float(b, row + column + 1);
    }
  }
}

TW_INLINE void store_rows(const ForwardArguments& arguments, const SnippetArguments& call,
                          const QTile& q_tile, const RowEnds& ends,
                          const float (&out)[kRows][kOutColumns]) {
  OutElement* const head = head_of<OutElement>(arguments.out, q_tile.b, q_tile.h) +
                           q_tile.q_begin() * arguments.out.row_stride;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int row = q_tile.first_row + row_of(i);
    if (row >= q_tile.q_len(call)) continue;
    store_row(out[i], ends.factor[i], ends.empty[i], head + row * arguments.out.row_stride);
  }
}

}  // namespace tw_kernel
