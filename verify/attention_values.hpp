#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "../generator/spec/spec.hpp"
#include "../runtime/api/shape.hpp"
#include "../runtime/api/tensor.hpp"

namespace tilewright::verify {

/// A tensor as doubles, dense, with its dimensions in one order whatever its layout and strides
/// were: [batch, heads, rows, width]. Packed rows are one batch.
struct Values {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::vector<double> data = {};

  static Values zeros(std::int64_t batch, std::int64_t heads, std::int64_t rows,
                      std::int64_t width);

  std::size_t index(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(((b * heads + h) * rows + row) * width + column);
  }
  double& at(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t column) {
    return data[index(b, h, row, column)];
  }
  double at(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t column) const {
    return data[index(b, h, row, column)];
  }
  /// The first of `width` elements.
  double* row(std::int64_t b, std::int64_t h, std::int64_t r) {
    return data.data() + index(b, h, r, 0);
  }
  const double* row(std::int64_t b, std::int64_t h, std::int64_t r) const {
    return data.data() + index(b, h, r, 0);
  }
  /// Whether all elements of the row are finite.
  bool is_finite_row(std::int64_t b, std::int64_t h, std::int64_t r) const;
  /// Of the finite elements.
  double greatest_magnitude() const;
};

/// What attention computes, in double whatever dtype it came from.
struct AttentionValues {
  Values out = {};  ///< [batch, num_q_heads, q_len, v_head_dim]
  Values lse = {};  ///< [batch, num_q_heads, q_len, 1]; without elements where none was written
  Values max_scores = {};  ///< likewise
  Values weights = {};     ///< likewise, [batch, num_q_heads, q_len, kv_len]
};

/// Reads q, k, v or out: any dtype, strides and layout. A stride of 0 repeats.
Values read_values(const TensorView& tensor, Layout layout);

/// Reads lse or max_scores [batch, num_q_heads, q_len], or [num_q_heads, total_q] of a packed call.
Values read_lse(const TensorView& lse);

}  // namespace tilewright::verify
