#pragma once

#include "abi/cpu.hpp"
#include "abi/pages.hpp"
#include "cpu/element.hpp"
#include "cpu/head.hpp"
#include "cpu/inline.hpp"
#include "cpu/paged_rows.hpp"
#include "cpu/staged_rows.hpp"
#include "kernel/configuration.hpp"

// Where rows of K and V lie: in pages of a pool, and the sequence's last ones in the step's new rows.

namespace tw_kernel {

class KvRows {
 public:
  TW_MEMBER KvRows(const TensorArgument& pool, const TensorArgument& fresh,
                   const SnippetArguments& call, int h_kv)
      : in_pages_(pool, call, 0, h_kv),
        fresh_(head_of<const QElement>(fresh, 0, h_kv)),
        fresh_stride_(fresh.row_stride),
        context_(tilewright::abi::context_of(call.q_len, call.kv_len)) {}

  // As PagedRows::stage.
  template <int kDim>
  TW_MEMBER StagedRows stage(int first, int count, long long max_stride, float* staged) const {
    const int left = context_ - first;  // rows that pages hold
    if (left >= count) return in_pages_.template stage<kDim>(first, count, max_stride, staged);
    const int of_pages = left > 0 ? left : 0;
    if (of_pages > 0) in_pages_.template copy<kDim>(first, of_pages, staged);
    const QElement* row = fresh_ + (first + of_pages - context_) * fresh_stride_;
    for (int i = of_pages; i < count; ++i, row += fresh_stride_) {
      load_row<kDim>(row, staged + i * kDim);
    }
    return {staged, kDim};
  }

 private:
  PagedRows in_pages_;
  const QElement* fresh_;  // of this head, from the sequence's first new column on
  long long fresh_stride_;
  int context_;  // the first new column
};

TW_INLINE KvRows k_rows(const ForwardArguments& call, int, int h_kv) {
  return {call.k, call.k_new, call.snippet, h_kv};
}
TW_INLINE KvRows v_rows(const ForwardArguments& call, int, int h_kv) {
  return {call.v, call.v_new, call.snippet, h_kv};
}

}  // namespace tw_kernel
