#pragma once

#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "packed_batch.hpp"
#include "ranks.hpp"

// One call of attention, undivided and over the ranks of a group.

namespace tilewright::test {

/// The tensors of the whole sequence.
struct WholeCall {
  Spec spec;
  Shape shape;
  Tensor q, k, v, out, lse;

  WholeCall(const Spec& given, const Shape& sizes) : spec(given), shape(sizes) {
    q = filled(spec.layout, shape.num_q_heads, shape.q_len, spec.head_dim, 1);
    k = filled(kv_layout(), shape.num_kv_heads, shape.kv_len, spec.head_dim, 2);
    v = filled(kv_layout(), shape.num_kv_heads, shape.kv_len, spec.value_head_dim(), 3);
    out = filled(spec.layout, shape.num_q_heads, shape.q_len, spec.value_head_dim(), 4);
    lse = Tensor::zeros(f32, {shape.batch, shape.num_q_heads, shape.q_len});
  }

  Layout kv_layout() const { return spec.key_value_layout(); }
  ForwardTensors tensors() const { return {.q = q, .k = k, .v = v, .out = out, .lse = lse.view()}; }

  Tensor filled(Layout layout, std::int64_t heads, std::int64_t rows, std::int64_t width,
                int seed) const {
    const std::vector<std::int64_t> dims = layout == Layout::bhsd
                                               ? std::vector{shape.batch, heads, rows, width}
                                               : std::vector{shape.batch, rows, heads, width};
    Tensor numbers = packed_calls::random_tensor(dims, seed);
    return packed_calls::in_dtype(numbers, spec.dtype);
  }
};

/// Copies rows of a tensor of rank 4, or of lse, whose rows are its last dimension.
inline void copy_rows(const TensorView& from, std::int64_t from_row, const TensorView& to,
                      std::int64_t to_row, std::int64_t rows, int row_dim) {
  const auto element = static_cast<std::int64_t>(size_of(from.dtype));
  const auto d = static_cast<std::size_t>(row_dim);
  std::int64_t outer = 1;
  std::int64_t inner = element;
  for (int i = 0; i < row_dim; ++i) outer *= from.shape[static_cast<std::size_t>(i)];
  for (int i = row_dim + 1; i < from.rank; ++i) inner *= from.shape[static_cast<std::size_t>(i)];
  for (std::int64_t i = 0; i < outer; ++i) {
    std::memcpy(static_cast<std::byte*>(to.data) + (i * to.shape[d] + to_row) * inner,
                static_cast<const std::byte*>(from.data) + (i * from.shape[d] + from_row) * inner,
                static_cast<std::size_t>(rows * inner));
  }
}

inline int row_dim(Layout layout) {
  return layout == Layout::bhsd ? 2 : 1;
}

/// A rank's own rows of a call, and its results, which begin as poison.
struct RankTensors {
  Tensor q, k, v, out, lse;

  RankTensors(const WholeCall& whole, const ContextPlan& plan) {
    const auto zeros = [&](const Tensor& of, Layout layout, std::int64_t rows) {
      std::vector<std::int64_t> dims(of.shape().begin(), of.shape().end());
      dims[static_cast<std::size_t>(row_dim(layout))] = rows;
      return Tensor::zeros(of.dtype(), dims);
    };
    q = zeros(whole.q, whole.spec.layout, plan.q_rows());
    out = zeros(whole.out, whole.spec.layout, plan.q_rows());
    k = zeros(whole.k, whole.kv_layout(), plan.kv_rows());
    v = zeros(whole.v, whole.kv_layout(), plan.kv_rows());
    lse = Tensor::zeros(f32, {whole.shape.batch, whole.shape.num_q_heads, plan.q_rows()});
    std::memset(out.data(), 0xff, static_cast<std::size_t>(out.bytes()));
    std::memset(lse.data(), 0xff, static_cast<std::size_t>(lse.bytes()));
    std::int64_t row = 0;
    std::int64_t column = 0;
    for (const Shard& shard : plan.shards()) {
      copy_rows(whole.q, shard.q_begin, q, row, shard.q_len, row_dim(whole.spec.layout));
      copy_rows(whole.k, shard.kv_begin, k, column, shard.kv_len, row_dim(whole.kv_layout()));
      copy_rows(whole.v, shard.kv_begin, v, column, shard.kv_len, row_dim(whole.kv_layout()));
      row += shard.q_len;
      column += shard.kv_len;
    }
  }

  ForwardTensors tensors(bool with_lse = true) const {
    ForwardTensors tensors = {.q = q, .k = k, .v = v, .out = out};
    if (with_lse) tensors.lse = lse.view();
    return tensors;
  }

  /// Writes the results where they belong in the whole.
  void put_into(WholeCall& whole, const ContextPlan& plan) const {
    std::int64_t row = 0;
    for (const Shard& shard : plan.shards()) {
      copy_rows(out, row, whole.out, shard.q_begin, shard.q_len, row_dim(whole.spec.layout));
      copy_rows(lse, row, whole.lse, shard.q_begin, shard.q_len, 2);
      row += shard.q_len;
    }
  }
};

/// The greatest distance of two tensors' elements; infinite where one is NaN or infinite alone.
inline double distance(const Tensor& a, const Tensor& b) {
  Tensor x = Tensor::zeros(f32, a.shape());
  Tensor y = Tensor::zeros(f32, b.shape());
  packed_calls::read_back(a, x);
  packed_calls::read_back(b, y);
  double greatest = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const double from = double{packed_calls::floats(x)[i]};
    const double to = double{packed_calls::floats(y)[i]};
    if (from == to) continue;
    const double apart = std::fabs(from - to);
    greatest = std::isfinite(apart) ? std::fmax(greatest, apart) : INFINITY;
    if (std::isinf(greatest)) return greatest;
  }
  return greatest;
}

}  // namespace tilewright::test
