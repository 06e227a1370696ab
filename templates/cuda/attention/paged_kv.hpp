#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/found_tile.hpp"
#include "cuda/attention/paged_rows.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"

// Where rows of k and v lie: in pages of a pool.

namespace tw_kernel {

using KvTensor = TensorArgument;
TW_INLINE const KvTensor& k_of(const ForwardArguments& arguments) { return arguments.k; }
TW_INLINE const KvTensor& v_of(const ForwardArguments& arguments) { return arguments.v; }

// The pool's rows of one head, [pages][page_size].
TW_INLINE const KvElement* find_kv(const TensorArgument& tensor, const QTile& q_tile) {
  return head_of<const KvElement>(tensor, 0, q_tile.h_kv);
}

// pool: from find_kv. The sequence's rows from `first` on.
TW_INLINE PagedRows kv_rows(const KvElement* pool, const TensorArgument& tensor, const QTile& q_tile,
                            int first) {
  return {pool, tensor, q_tile.pages, first};
}

// What is found of a tile before it is copied.
TW_INLINE FoundTile find_tile(const QTile& q_tile, int first) {
  return find_in_pages(q_tile, first);
}

// Calls load(rows, count) for the tile's rows from `first` on, of which `count` exist.
template <typename Load>
TW_INLINE void load_found(const FoundTile& found, const KvElement* pool, const TensorArgument& tensor,
                          const QTile& q_tile, int, int count, const Load& load) {
  load_from_pages(found, pool, tensor, q_tile, count, load);
}

}  // namespace tw_kernel
