#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/language.hpp"

// Where boxes are in the dimensions of batch and heads of a tensor map: one that is broadcast has extent 1 there.

namespace tw_kernel {

TW_INLINE int batch_in(const TensorArgument& tensor, const QTile& q_tile) {
  return tensor.batch_stride == 0 ? 0 : q_tile.b;
}
TW_INLINE int head_in(const TensorArgument& tensor, int h) {
  return tensor.head_stride == 0 ? 0 : h;
}

}  // namespace tw_kernel
