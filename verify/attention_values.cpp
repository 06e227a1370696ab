#include "verify/attention_values.hpp"

#include <utility>

#include "runtime/io/float16.hpp"

namespace tilewright::verify {

Values Values::zeros(std::int64_t batch, std::int64_t heads, std::int64_t rows,
                     std::int64_t width) {
  return {batch, heads, rows, width,
          std::vector<double>(static_cast<std::size_t>(batch * heads * rows * width))};
}

Values read_values(const TensorView& tensor, Layout layout) {
  const int head_dimension = layout == Layout::bhsd ? 1 : 2;
  const int row_dimension = layout == Layout::bhsd ? 2 : 1;
  Values values = Values::zeros(tensor.shape[0], tensor.shape[head_dimension],
                                tensor.shape[row_dimension], tensor.shape[3]);
  for (std::int64_t b = 0; b < values.batch; ++b) {
    for (std::int64_t h = 0; h < values.heads; ++h) {
      for (std::int64_t row = 0; row < values.rows; ++row) {
        const std::int64_t start = b * tensor.strides[0] + h * tensor.strides[head_dimension] +
                                   row * tensor.strides[row_dimension];
        double* out = values.row(b, h, row);
        for (std::int64_t i = 0; i < values.width; ++i) {
          out[i] = read_element(tensor.data, tensor.dtype, start + i * tensor.strides[3]);
        }
      }
    }
  }
  return values;
}

Values read_lse(const TensorView& lse) {
  Values values = Values::zeros(lse.shape[0], lse.shape[1], lse.shape[2], 1);
  for (std::int64_t b = 0; b < values.batch; ++b) {
    for (std::int64_t h = 0; h < values.heads; ++h) {
      for (std::int64_t row = 0; row < values.rows; ++row) {
        values.at(b, h, row, 0) = read_element(
            lse.data, lse.dtype, b * lse.strides[0] + h * lse.strides[1] + row * lse.strides[2]);
      }
    }
  }
  return values;
}

}  // namespace tilewright::verify
