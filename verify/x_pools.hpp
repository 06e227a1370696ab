#pragma once

#include <cstdint>

#include "../runtime/api/tensor.hpp"

namespace tilewright::verify {

/// A pool of k or v in pages, whatever its kv_layout.
class Pool {
 public:
  /// @param is_x kv_layout is "paged_x": k has rank 5, v rank 4
  Pool(const TensorView& view, bool is_x);

  const TensorView& view() const { return view_; }
  std::int64_t pages() const { return view_.shape[0]; }
  std::int64_t page_size() const { return view_.shape[row_]; }
  std::int64_t heads() const { return view_.shape[head_]; }
  std::int64_t width() const { return view_.shape[column_] * x_; }

  /// The place of an element, counted in elements from the first.
  std::int64_t at(std::int64_t page, std::int64_t row, std::int64_t head, std::int64_t i) const {
    return page * view_.strides[0] + row * view_.strides[row_] + head * view_.strides[head_] +
           i / x_ * view_.strides[column_] + (x_ > 1 ? i % x_ * view_.strides[4] : 0);
  }

 private:
  TensorView view_;
  std::size_t row_, head_, column_;
  std::int64_t x_ = 1;
};

/// The same pool in paged_x. @param pool [pages, page_size, heads, width]
/// @param is_k whether elements of a row lie in blocks of 16 bytes
Tensor x_pool(const TensorView& pool, bool is_k);

}  // namespace tilewright::verify
