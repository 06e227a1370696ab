#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/pages.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/attention/strided_rows.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/thread.hpp"
#include "kernel/configuration.hpp"

// Rows of a tile in pages, looked up before they are copied: by a warp that copies the tile alone, a row by
// each lane.

namespace tw_kernel {

struct FoundTile {
  int page;  // of the lane's row, as the table says
  int row;   // in its page
};

// first: the tile's first row in the sequence. Lanes after the last row look it up too.
TW_INLINE FoundTile find_in_pages(const QTile& q_tile, int first) {
  const auto lane = static_cast<int>(thread_number<32>());
  const int at = min(first + lane % kKvTile, q_tile.rows.kv_len - 1);
  const int index = tilewright::abi::quotient(at, q_tile.pages.page_size);
  return {tilewright::abi::page_entry(q_tile.pages, index),
          at - index * q_tile.pages.page_size.value};
}

// The rows by what the lanes have found. All lanes read together.
class FoundRows {
 public:
  __forceinline__ FoundRows(const KvElement* pool, const TensorArgument& tensor, int pages,
                            const FoundTile& found)
      : pool_(pool), tensor_(tensor), pages_(pages), found_(found) {}

  // As PagedRows::Cursor.
  class Cursor {
   public:
    __forceinline__ Cursor(const FoundRows& rows, int row, int column)
        : rows_(rows), row_(row), column_(column) {}
    __forceinline__ RowSource<KvElement> read(bool is_wanted) const {
      const int page = __shfl_sync(~0u, rows_.found_.page, row_);
      const int row = __shfl_sync(~0u, rows_.found_.row, row_);
      if (!is_wanted || !tilewright::abi::is_present(page, rows_.pages_)) {
        return {rows_.pool_, false};
      }
      const TensorArgument& tensor = rows_.tensor_;
      return {rows_.pool_ + page * tensor.batch_stride + row * tensor.row_stride + column_, true};
    }
    __forceinline__ void advance(int rows) { row_ += rows; }

   private:
    const FoundRows& rows_;
    int row_;
    int column_;
  };
  __forceinline__ Cursor from(int row, int column) const { return {*this, row, column}; }

 private:
  const KvElement* pool_;
  const TensorArgument& tensor_;  // strides of the pool; a page's is the batch's
  int pages_;                     // of the pool
  const FoundTile& found_;
};

// Calls load(rows, count) for a tile of which `count` rows exist. A page that is not in the pool has none.
template <typename Load>
TW_INLINE void load_from_pages(const FoundTile& found, const KvElement* pool,
                               const TensorArgument& tensor, const QTile& q_tile, int count,
                               const Load& load) {
  const int pages = q_tile.pages.pages;
  if (q_tile.pages.page_size.value % kKvTile != 0) {
    load(FoundRows(pool, tensor, pages, found), count);
    return;
  }
  // All rows are in one page.
  const int page = __shfl_sync(~0u, found.page, 0), row = __shfl_sync(~0u, found.row, 0);
  const bool exists = tilewright::abi::is_present(page, pages);
  const KvElement* const rows =
      pool + (exists ? page : 0) * tensor.batch_stride + row * tensor.row_stride;
  load(StridedRows<KvElement>(rows, tensor.row_stride), exists ? count : 0);
}

}  // namespace tw_kernel
