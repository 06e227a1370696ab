#pragma once

#include "cuda/language.hpp"
#include "cuda/ptx/tensor_copy.hpp"

// Boxes of a dense call's tensors: the copy engine knows where each sequence's rows end.

namespace tw_kernel {

// Where a box begins among the rows of one sequence.
struct BoxRow {
  int row;
};
TW_INLINE BoxRow box_row(int, int, int row) { return {row}; }

TW_INLINE void load_rows(unsigned to, const TensorMap& map, unsigned barrier, int column, BoxRow at,
                         int h, int b) {
  load_box(to, map, barrier, column, at.row, h, b);
}

TW_INLINE void send_rows(const TensorMap& map, unsigned from, int column, BoxRow at, int h, int b) {
  store_box(map, from, column, at.row, h, b);
}

}  // namespace tw_kernel
