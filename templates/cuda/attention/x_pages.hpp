#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/pages.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/attention/strided_rows.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"

// Where rows of k and v lie: in pages of paged_x. Of a head a page has k as [head_dim / x, page_size, x], where
// x elements are 16 bytes, and v as [v_head_dim, page_size].

namespace tw_kernel {

using KvTensor = TensorArgument;
TW_INLINE const KvTensor& k_of(const ForwardArguments& arguments) { return arguments.k; }
TW_INLINE const KvTensor& v_of(const ForwardArguments& arguments) { return arguments.v; }

// The pool of one head.
TW_INLINE const KvElement* find_kv(const TensorArgument& tensor, const QTile& q_tile) {
  return head_of<const KvElement>(tensor, 0, q_tile.h_kv);
}

class XPagedRows {
 public:
  __forceinline__ XPagedRows(const KvElement* pool, const TensorArgument& tensor,
                             const tilewright::abi::SequencePages& pages, int first)
      : pool_(pool), page_stride_(tensor.batch_stride), pages_(pages), first_(first) {}

  // Of k, as PagedRows has it: from a column on, up to the next multiple of x.
  class Cursor {
   public:
    __forceinline__ Cursor(const XPagedRows& rows, int row, int column)
        : rows_(rows), row_(row), column_(column) {}
    __forceinline__ RowSource<KvElement> read(bool is_wanted) const {
      constexpr int kX = 16 / static_cast<int>(sizeof(KvElement));
      const Found found = rows_.find(row_, is_wanted);
      const int size = rows_.pages_.page_size.value;
      const long long block = static_cast<long long>(column_ / kX) * size + found.row;
      return {found.page + block * kX + column_ % kX, found.is_present};
    }
    __forceinline__ void advance(int rows) { row_ += rows; }

   private:
    const XPagedRows& rows_;
    int row_;
    int column_;
  };
  __forceinline__ Cursor from(int row, int column) const { return {*this, row, column}; }

  // Of v: elements column, column + 1, ... of a row, which lie `stride` apart.
  struct Column {
    const KvElement* data;
    int stride;
    bool is_present;
  };
  __forceinline__ Column of_v(int row, int column, bool is_wanted) const {
    const Found found = find(row, is_wanted);
    const int size = pages_.page_size.value;
    return {found.page + static_cast<long long>(column) * size + found.row, size, found.is_present};
  }

 private:
  struct Found {
    const KvElement* page;
    int row;  // of the page
    bool is_present;
  };
  // Only rows that are wanted are looked up in the table.
  __forceinline__ Found find(int row, bool is_wanted) const {
    if (!is_wanted) return {pool_, 0, false};
    const int at = first_ + row;
    const int index = tilewright::abi::quotient(at, pages_.page_size);
    const int page = tilewright::abi::page_entry(pages_, index);
    if (!tilewright::abi::is_present(page, pages_.pages)) return {pool_, 0, false};
    return {pool_ + page * page_stride_, at - index * pages_.page_size.value, true};
  }

  const KvElement* pool_;
  long long page_stride_;
  const tilewright::abi::SequencePages& pages_;  // in shared memory
  int first_;                                    // row of the sequence that row 0 is
};

// pool: from find_kv. The sequence's rows from `first` on.
TW_INLINE XPagedRows kv_rows(const KvElement* pool, const TensorArgument& tensor,
                             const QTile& q_tile, int first) {
  return {pool, tensor, q_tile.pages, first};
}

}  // namespace tw_kernel
