#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "divided_call.hpp"

// One backward call, undivided and over the ranks of a group, for specs with gradients of q, k and
// v.

namespace tilewright::test {

/// What backward reads of a call, and where gradients of it go.
template <typename Call, typename Gradients>
BackwardTensors backward_tensors(const Call& call, const Gradients& gradients) {
  return {.q = call.q,
          .k = call.k,
          .v = call.v,
          .out = call.out,
          .lse = call.lse,
          .dout = gradients.dout,
          .dlse = gradients.dlse.view(),
          .dq = gradients.dq.view(),
          .dk = gradients.dk.view(),
          .dv = gradients.dv.view()};
}

/// Gradients of a WholeCall.
struct WholeGradients {
  Tensor dout, dlse, dq, dk, dv;

  explicit WholeGradients(const WholeCall& call) {
    dout = call.filled(call.spec.layout, call.shape.num_q_heads, call.shape.q_len,
                       call.spec.value_head_dim(), 5);
    dlse = packed_calls::random_tensor(call.lse.shape(), 6);
    dq = Tensor::zeros(call.q.dtype(), call.q.shape());
    dk = Tensor::zeros(call.k.dtype(), call.k.shape());
    dv = Tensor::zeros(call.v.dtype(), call.v.shape());
  }

  BackwardTensors tensors(const WholeCall& call) const { return backward_tensors(call, *this); }
};

/// A rank's own rows of them. dq, dk and dv begin as poison.
struct RankGradients {
  Tensor dout, dlse, dq, dk, dv;

  RankGradients(const WholeCall& call, const WholeGradients& whole, const RankTensors& own,
                const ContextPlan& plan)
      : dout(Tensor::zeros(own.out.dtype(), own.out.shape())),
        dlse(Tensor::zeros(f32, own.lse.shape())),
        dq(poison(own.q)),
        dk(poison(own.k)),
        dv(poison(own.v)) {
    std::int64_t row = 0;
    for (const Shard& shard : plan.shards()) {
      copy_rows(whole.dout, shard.q_begin, dout, row, shard.q_len, row_dim(call.spec.layout));
      copy_rows(whole.dlse, shard.q_begin, dlse, row, shard.q_len, 2);
      row += shard.q_len;
    }
  }

  BackwardTensors tensors(const RankTensors& own) const { return backward_tensors(own, *this); }

  void put_into(const WholeCall& call, WholeGradients& whole, const ContextPlan& plan) const {
    std::int64_t row = 0;
    std::int64_t column = 0;
    for (const Shard& shard : plan.shards()) {
      copy_rows(dq, row, whole.dq, shard.q_begin, shard.q_len, row_dim(call.spec.layout));
      copy_rows(dk, column, whole.dk, shard.kv_begin, shard.kv_len, row_dim(call.kv_layout()));
      copy_rows(dv, column, whole.dv, shard.kv_begin, shard.kv_len, row_dim(call.kv_layout()));
      row += shard.q_len;
      column += shard.kv_len;
    }
  }

 private:
  static Tensor poison(const Tensor& like) {
    Tensor tensor = Tensor::zeros(like.dtype(), like.shape());
    std::memset(tensor.data(), 0xff, static_cast<std::size_t>(tensor.bytes()));
    return tensor;
  }
};

/// How far two calls in f32 may lie apart, by counting roundings of u = 2^-24. Elements of q, k, v,
/// dout and dlse are at most 1.5, and so are those of out; |score| is at most scale * D * 2.25
/// + 1.5.
struct GradientBounds {
  double dq, dk, dv;

  /// @param weight the greatest sum of P over the rows that read one column
  GradientBounds(const Spec& spec, const Shape& shape, double weight) {
    constexpr double kUnit = 0x1p-24;
    const auto dim = static_cast<double>(spec.head_dim);
    const auto value_dim = static_cast<double>(spec.value_head_dim());
    const auto columns = static_cast<double>(shape.kv_len);
    const auto rows = static_cast<double>(shape.q_len * shape.num_q_heads / shape.num_kv_heads);
    const double scale = 1 / std::sqrt(dim);
    const double score = scale * dim * 2.25 + 1.5;
    // P: a score's dot product, lse's sum over the columns, exp and log.
    const double of_p = dim * score + columns + 2 * (score + std::log(columns)) + 8;
    // dP - delta: two dot products, and out's error.
    const double term = 2 * value_dim * 2.25 + 1.5;
    const double of_term =
        2 * value_dim * value_dim * 2.25 + value_dim * 1.5 * (columns + 20) * 1.5;
    const double of_dx = of_p * term + of_term;
    dq = 2 * kUnit * scale * 1.5 * (of_dx + columns * term);
    dk = 2 * kUnit * scale * 1.5 * (of_dx + rows * term) * std::max(weight, 1.0);
    dv = 2 * kUnit * 1.5 * (of_p + rows) * std::max(weight, 1.0);
  }
};

/// The greatest element of f32.
inline double greatest(Tensor& tensor) {
  const float* const begin = packed_calls::floats(tensor);
  return double{*std::max_element(begin, begin + tensor.numel())};
}

}  // namespace tilewright::test
