#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/attention/strided_rows.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"

// Where rows of k and v lie: one stride apart.

namespace tw_kernel {

using KvTensor = TensorArgument;
TW_INLINE const KvTensor& k_of(const ForwardArguments& arguments) { return arguments.k; }
TW_INLINE const KvTensor& v_of(const ForwardArguments& arguments) { return arguments.v; }

// The sequence's rows of one head.
TW_INLINE const KvElement* find_kv(const TensorArgument& tensor, const QTile& q_tile) {
  return head_of<const KvElement>(tensor, q_tile.b, q_tile.h_kv) +
         q_tile.kv_begin() * tensor.row_stride;
}

// kv: from find_kv. The rows from `first` on.
TW_INLINE StridedRows<KvElement> kv_rows(const KvElement* kv, const TensorArgument& tensor,
                                         const QTile&, int first) {
  return {kv + first * tensor.row_stride, tensor.row_stride};
}

// What is found of a tile before it is copied: nothing needs to be.
struct FoundTile {};
TW_INLINE FoundTile find_tile(const QTile&, int) {
  return {};
}

// Calls load(rows, count) for the tile's rows from `first` on, of which `count` exist.
template <typename Load>
TW_INLINE void load_found(FoundTile, const KvElement* kv, const TensorArgument& tensor,
                          const QTile& q_tile, int first, int count, const Load& load) {
  load(kv_rows(kv, tensor, q_tile, first), count);
}

}  // namespace tw_kernel
