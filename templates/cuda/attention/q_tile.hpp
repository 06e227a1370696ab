#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/sequence.hpp"

// Which q tile of which head of which sequence a block of threads works on.

namespace tw_kernel {

using tilewright::abi::cuda::BlockMaskArguments;
using tilewright::abi::cuda::TensorArgument;

struct QTile : PlacedSequence {
  int b;
  int h;
  int h_kv;
  int first_row;  // of the q tile, counted from the sequence's first
  int mask_row;   // row of tiles of the block mask; the first of two where kSpansTwoBlocks
};

template <typename Element>
TW_INLINE Element* head_of(const TensorArgument& tensor, int b, int h) {
  return static_cast<Element*>(tensor.data) + b * tensor.batch_stride + h * tensor.head_stride;
}

// What the loop over kv tiles needs now and then. It lies in shared memory, as the accumulators
// leave no register for it.
struct HeadPointers {
  QTile q_tile;
  const KvElement* k;  // find_kv: rows of this head
  const KvElement* v;
};

}  // namespace tw_kernel
