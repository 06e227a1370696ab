#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/pages.hpp"
#include "cuda/attention/either_row.hpp"
#include "cuda/attention/found_tile.hpp"
#include "cuda/attention/paged_rows.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/sequence.hpp"

// Where rows of k and v lie: in pages of a pool, and the sequence's last ones in the step's new rows.

namespace tw_kernel {

struct KvTensor {
  const TensorArgument& pool;
  const TensorArgument& fresh;
};
TW_INLINE KvTensor k_of(const ForwardArguments& arguments) { return {arguments.k, arguments.k_new}; }
TW_INLINE KvTensor v_of(const ForwardArguments& arguments) { return {arguments.v, arguments.v_new}; }

// The pool's rows of one head, [pages][page_size].
TW_INLINE const KvElement* find_kv(const KvTensor& tensor, const QTile& q_tile) {
  return head_of<const KvElement>(tensor.pool, 0, q_tile.h_kv);
}

class PagedAndNewRows {
 public:
  using Row = RowOf<KvElement, QElement>;

  __forceinline__ PagedAndNewRows(const KvElement* pool, const KvTensor& tensor, const QTile& q_tile,
                                  int first)
      : in_pages_(pool, tensor.pool, q_tile.pages, first),
        pool_(pool),
        fresh_(head_of<const QElement>(tensor.fresh, 0, q_tile.h_kv) +
               static_cast<long long>(q_tile.rows.q_begin + q_tile.rows.q_len - q_tile.rows.kv_len +
                                      first) *
                   tensor.fresh.row_stride),
        fresh_stride_(tensor.fresh.row_stride),
        of_pages_(tilewright::abi::context_of(q_tile.rows.q_len, q_tile.rows.kv_len) - first) {}

  // As PagedRows::Cursor.
  class Cursor {
   public:
    __forceinline__ Cursor(const PagedAndNewRows& rows, int row, int column)
        : rows_(rows), row_(row), column_(column) {}
    __forceinline__ Row::Source read(bool is_wanted) const {
      return is_wanted ? rows_.find(row_, column_) : Row::absent(rows_.pool_);
    }
    __forceinline__ void advance(int rows) { row_ += rows; }

   private:
    const PagedAndNewRows& rows_;
    int row_;
    int column_;
  };
  __forceinline__ Cursor from(int row, int column) const { return {*this, row, column}; }

 private:
  __forceinline__ Row::Source find(int row, int column) const {
    if (row < of_pages_) return Row::of_pages(in_pages_.find(row, column));
    return Row::of_new(fresh_ + row * fresh_stride_ + column, pool_);
  }

  PagedRows in_pages_;
  const KvElement* pool_;
  const QElement* fresh_;  // where row 0 is or would be; rows from of_pages_ on are read
  long long fresh_stride_;
  int of_pages_;  // rows that pages hold
};

// pool: from find_kv. The sequence's rows from `first` on.
TW_INLINE PagedAndNewRows kv_rows(const KvElement* pool, const KvTensor& tensor, const QTile& q_tile,
                                  int first) {
  return {pool, tensor, q_tile, first};
}

TW_INLINE bool is_in_pages(const QTile& q_tile, int first) {
  return first + kKvTile <= tilewright::abi::context_of(q_tile.rows.q_len, q_tile.rows.kv_len);
}

// What is found of a tile before it is copied: nothing where it has new rows.
TW_INLINE FoundTile find_tile(const QTile& q_tile, int first) {
  return is_in_pages(q_tile, first) ? find_in_pages(q_tile, first) : FoundTile{0, 0};
}

// Calls load(rows, count) for the tile's rows from `first` on, of which `count` exist.
template <typename Load>
TW_INLINE void load_found(const FoundTile& found, const KvElement* pool, const KvTensor& tensor,
                          const QTile& q_tile, int first, int count, const Load& load) {
  if (is_in_pages(q_tile, first)) {
    load_from_pages(found, pool, tensor.pool, q_tile, count, load);
  } else {
    load(kv_rows(pool, tensor, q_tile, first), count);
  }
}

}  // namespace tw_kernel
