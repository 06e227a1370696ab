#pragma once

#include "abi/cuda_tensor_maps.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/tensor_copy.hpp"

// Boxes of a packed call's tensors: each says where its sequence ends, so that rows of the next one are
// read as 0 and not written (abi/cuda_tensor_maps.hpp).

namespace tw_kernel {

using tilewright::abi::cuda::kRaggedRows;

// Where a box begins among the rows of one sequence.
struct BoxRow {
  int row;  // the sequence's rows end at kRaggedRows
  int end;  // of the sequence, in the packed tensor
};
TW_INLINE BoxRow box_row(int begin, int len, int row) {
  return {kRaggedRows - len + row, begin + len};
}

TW_INLINE void load_rows(unsigned to, const TensorMap& map, unsigned barrier, int column, BoxRow at,
                         int h, int) {
  load_box(to, map, barrier, column, at.row, h, at.end, kRaggedRows);
}

TW_INLINE void send_rows(const TensorMap& map, unsigned from, int column, BoxRow at, int h, int) {
  store_box(map, from, column, at.row, h, at.end, kRaggedRows);
}

}  // namespace tw_kernel
