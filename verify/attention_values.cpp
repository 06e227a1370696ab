#include "verify/attention_values.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/io/float16.hpp"

namespace tilewright::verify {

Values Values::zeros(std::int64_t batch, std::int64_t heads, std::int64_t rows,
                     std::int64_t width) {
  return {batch, heads, rows, width,
          std::vector<double>(static_cast<std::size_t>(batch * heads * rows * width))};
}

bool Values::is_finite_row(std::int64_t b, std::int64_t h, std::int64_t r) const {
  const double* const begin = row(b, h, r);
  return std::all_of(begin, begin + width, [](double x) { return std::isfinite(x); });
}

double Values::greatest_magnitude() const {
  double greatest = 0;
  for (const double value : data) {
    if (std::isfinite(value)) greatest = std::max(greatest, std::fabs(value));
  }
  return greatest;
}

Values read_values(const TensorView& tensor, Layout layout) {
  // Of packed rows there is one batch.
  const int first = layout == Layout::packed ? 0 : 1;
  const int head_dimension = layout == Layout::bhsd ? 1 : first + 1;
  const int row_dimension = layout == Layout::bhsd ? 2 : first;
  const int width_dimension = first + 2;
  const std::int64_t batch_stride = first == 0 ? 0 : tensor.strides[0];
  Values values = Values::zeros(first == 0 ? 1 : tensor.shape[0], tensor.shape[head_dimension],
                                tensor.shape[row_dimension], tensor.shape[width_dimension]);
  for (std::int64_t b = 0; b < values.batch; ++b) {
    for (std::int64_t h = 0; h < values.heads; ++h) {
      for (std::int64_t row = 0; row < values.rows; ++row) {
        const std::int64_t start = b * batch_stride + h * tensor.strides[head_dimension] +
                                   row * tensor.strides[row_dimension];
        double* out = values.row(b, h, row);
        for (std::int64_t i = 0; i < values.width; ++i) {
          out[i] =
              read_element(tensor.data, tensor.dtype, start + i * tensor.strides[width_dimension]);
        }
      }
    }
  }
  return values;
}

Values read_lse(const TensorView& lse) {
  const int first = lse.rank == 2 ? 0 : 1;
  const std::int64_t batch_stride = first == 0 ? 0 : lse.strides[0];
  Values values =
      Values::zeros(first == 0 ? 1 : lse.shape[0], lse.shape[first], lse.shape[first + 1], 1);
  for (std::int64_t b = 0; b < values.batch; ++b) {
    for (std::int64_t h = 0; h < values.heads; ++h) {
      for (std::int64_t row = 0; row < values.rows; ++row) {
        values.at(b, h, row, 0) =
            read_element(lse.data, lse.dtype,
                         b * batch_stride + h * lse.strides[first] + row * lse.strides[first + 1]);
      }
    }
  }
  return values;
}

}  // namespace tilewright::verify
