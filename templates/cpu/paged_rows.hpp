#pragma once

#include "abi/cpu.hpp"
#include "abi/pages.hpp"
#include "cpu/element.hpp"
#include "cpu/head.hpp"
#include "cpu/inline.hpp"
#include "cpu/staged_rows.hpp"
#include "kernel/configuration.hpp"

// Rows of K or V of one sequence that lie in pages of a pool.

namespace tw_kernel {

class PagedRows {
 public:
  TW_MEMBER PagedRows(const TensorArgument& tensor, const SnippetArguments& call, int, int h_kv)
      : pool_(head_of<const KvElement>(tensor, 0, h_kv)),
        page_stride_(tensor.batch_stride),
        stride_(tensor.row_stride),
        pages_(call.pages) {}

  // Rows [first, first + count) as floats: in place where one page has them all as floats at most
  // max_stride apart, else in `staged`, [count][kDim]. Rows of a page that is not present are zeros.
  template <int kDim>
  TW_MEMBER StagedRows stage(int first, int count, long long max_stride, float* staged) const {
    const int size = pages_.page_size.value;
    const int index = tilewright::abi::quotient(first, pages_.page_size);
    const int row = first - index * size;  // in its page
    if (row + count <= size && is_float(pool_) && stride_ <= max_stride) {
      const KvElement* const page = rows_of_page(index);
      if (page != nullptr) return {reinterpret_cast<const float*>(page + row * stride_), stride_};
    }
    copy<kDim>(first, count, staged);
    return {staged, kDim};
  }

  // The same, always in `staged`.
  template <int kDim>
  TW_MEMBER void copy(int first, int count, float* staged) const {
    const int size = pages_.page_size.value;
    int index = tilewright::abi::quotient(first, pages_.page_size);
    int row = first - index * size;
    for (int done = 0; done < count; ++index, row = 0) {
      const int left = count - done, in_page = size - row < left ? size - row : left;
      stage_page<kDim>(rows_of_page(index), row, in_page, staged + done * kDim);
      done += in_page;
    }
  }

 private:
  // Null where the pool has no such page.
  TW_MEMBER const KvElement* rows_of_page(int index) const {
    const int page = tilewright::abi::page_entry(pages_, index);
    return tilewright::abi::is_present(page, pages_.pages) ? pool_ + page * page_stride_ : nullptr;
  }

  template <int kDim>
  TW_MEMBER void stage_page(const KvElement* page, int row, int count, float* staged) const {
    for (int i = 0; i < count; ++i, staged += kDim) {
      if (page != nullptr) {
        load_row<kDim>(page + (row + i) * stride_, staged);
      } else {
        for (int d = 0; d < kDim; ++d) staged[d] = 0.0f;
      }
    }
  }

  const KvElement* pool_;  // [pages][page_size] rows of this head
  long long page_stride_;
  long long stride_;
  tilewright::abi::SequencePages pages_;
};

}  // namespace tw_kernel
