#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/place.hpp"
#include "cuda/attention/paged_rows.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"

// Where rows of k and v lie: in pages of a pool.

namespace tw_kernel {

using KvTensor = TensorArgument;
TW_INLINE const KvTensor& k_of(const ForwardArguments& arguments) { return arguments.k; }
TW_INLINE const KvTensor& v_of(const ForwardArguments& arguments) { return arguments.v; }

// The pool's rows of one head, [pages][page_size].
TW_INLINE const KvElement* find_kv(const TensorArgument& tensor, const Place& place) {
  return head_of<const KvElement>(tensor, 0, place.h_kv);
}

// pool: from find_kv. The sequence's rows from `first` on.
TW_INLINE PagedRows kv_rows(const KvElement* pool, const TensorArgument& tensor, const Place& place,
                            int first) {
  return {pool, tensor, place.pages, first};
}

}  // namespace tw_kernel
