#pragma once

#include "abi/cpu.hpp"
#include "cpu/element.hpp"
#include "cpu/head.hpp"
#include "cpu/inline.hpp"
#include "cpu/staged_rows.hpp"
#include "kernel/configuration.hpp"

// Rows of K or V of one sequence that lie one stride apart.

namespace tw_kernel {

class KvRows {
 public:
  TW_MEMBER KvRows(const TensorArgument& tensor, const SnippetArguments&, int b, int h_kv)
      : rows_(head_of<const KvElement>(tensor, b, h_kv)), stride_(tensor.row_stride) {}

  // Rows [first, first + count) as floats: in place where they are floats at most max_stride apart, else
  // in `staged`, [count][kDim].
  template <int kDim>
  TW_MEMBER StagedRows stage(int first, int count, long long max_stride, float* staged) const {
    const KvElement* const rows = rows_ + first * stride_;
    if (is_float(rows) && stride_ <= max_stride) {
      return {reinterpret_cast<const float*>(rows), stride_};
    }
    for (int i = 0; i < count; ++i) load_row<kDim>(rows + i * stride_, staged + i * kDim);
    return {staged, kDim};
  }

 private:
  const KvElement* rows_;  // [kv_len] rows of this head
  long long stride_;
};

TW_INLINE KvRows k_rows(const ForwardArguments& call, int b, int h_kv) {
  return {call.k, call.snippet, b, h_kv};
}
TW_INLINE KvRows v_rows(const ForwardArguments& call, int b, int h_kv) {
  return {call.v, call.snippet, b, h_kv};
}

}  // namespace tw_kernel
