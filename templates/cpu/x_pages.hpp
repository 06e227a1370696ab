#pragma once

#include "abi/cpu.hpp"
#include "abi/pages.hpp"
#include "cpu/element.hpp"
#include "cpu/head.hpp"
#include "cpu/inline.hpp"
#include "cpu/staged_rows.hpp"
#include "kernel/configuration.hpp"

// Where rows of K and V lie: in pages of paged_x, in which a page has of a head [dim / x, page_size, x].

namespace tw_kernel {

class KvRows {
 public:
  // A row's stride is x: 16 bytes in K, one element in V.
  TW_MEMBER KvRows(const TensorArgument& tensor, const SnippetArguments& call, int h_kv)
      : pool_(head_of<const KvElement>(tensor, 0, h_kv)),
        page_stride_(tensor.batch_stride),
        x_(static_cast<int>(tensor.row_stride)),
        pages_(call.pages) {}

  // Rows [first, first + count) as floats, in `staged`, [count][kDim]. Rows of a page that is not present are
  // zeros.
  template <int kDim>
  TW_MEMBER StagedRows stage(int first, int count, long long, float* staged) const {
    const int size = pages_.page_size.value;
    int index = tilewright::abi::quotient(first, pages_.page_size);
    int row = first - index * size;
    for (int done = 0; done < count; ++index, row = 0) {
      const int left = count - done, in_page = size - row < left ? size - row : left;
      stage_page<kDim>(index, row, in_page, staged + done * kDim);
      done += in_page;
    }
    return {staged, kDim};
  }

 private:
  template <int kDim>
  TW_MEMBER void stage_page(int index, int row, int count, float* staged) const {
    const int page = tilewright::abi::page_entry(pages_, index);
    if (!tilewright::abi::is_present(page, pages_.pages)) {
      for (int i = 0; i < count * kDim; ++i) staged[i] = 0.0f;
      return;
    }
    const long long block_stride = static_cast<long long>(pages_.page_size.value) * x_;
    const KvElement* block = pool_ + page * page_stride_ + static_cast<long long>(row) * x_;
    for (int d = 0; d < kDim; d += x_, block += block_stride) {
      for (int i = 0; i < count; ++i) {
        for (int j = 0; j < x_; ++j) staged[i * kDim + d + j] = to_float(block[i * x_ + j]);
      }
    }
  }

  const KvElement* pool_;  // [pages][dim / x][page_size][x] of this head
  long long page_stride_;
  int x_;
  tilewright::abi::SequencePages pages_;
};

TW_INLINE KvRows k_rows(const ForwardArguments& call, int, int h_kv) {
  return {call.k, call.snippet, h_kv};
}
TW_INLINE KvRows v_rows(const ForwardArguments& call, int, int h_kv) {
  return {call.v, call.snippet, h_kv};
}

}  // namespace tw_kernel
