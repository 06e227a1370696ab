#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/pages.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/attention/strided_rows.hpp"
#include "kernel/configuration.hpp"

// Rows of k and v of one sequence that lie in pages of a pool.

namespace tw_kernel {

class PagedRows {
 public:
  __forceinline__ PagedRows(const KvElement* pool, const TensorArgument& tensor,
                            const tilewright::abi::SequencePages& pages, int first)
      : pool_(pool), tensor_(tensor), pages_(pages), first_(first) {}

  // Walks down a column. Only rows that are wanted are looked up in the table.
  class Cursor {
   public:
    __forceinline__ Cursor(const PagedRows& rows, int row, int column)
        : rows_(rows), row_(row), column_(column) {}
    __forceinline__ RowSource<KvElement> read(bool is_wanted) const {
      return is_wanted ? rows_.find(row_, column_) : RowSource<KvElement>{rows_.pool_, false};
    }
    __forceinline__ void advance(int rows) { row_ += rows; }

   private:
    const PagedRows& rows_;
    int row_;
    int column_;
  };
  __forceinline__ Cursor from(int row, int column) const { return {*this, row, column}; }

  __forceinline__ RowSource<KvElement> find(int row, int column) const {
    const int at = first_ + row;
    const int index = tilewright::abi::quotient(at, pages_.page_size);
    const int page = tilewright::abi::page_entry(pages_, index);
    if (!tilewright::abi::is_present(page, pages_.pages)) return {pool_, false};
    const int row_of_page = at - index * pages_.page_size.value;
    return {pool_ + page * tensor_.batch_stride + row_of_page * tensor_.row_stride + column, true};
  }

 private:
  const KvElement* pool_;
  const TensorArgument& tensor_;                 // strides of the pool; a page's is the batch's
  const tilewright::abi::SequencePages& pages_;  // in shared memory
  int first_;                                    // row of the sequence that row 0 is
};

}  // namespace tw_kernel
