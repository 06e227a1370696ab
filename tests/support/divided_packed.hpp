#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "divided_gradients.hpp"

// One packed call of attention, undivided and over the ranks of a group.

namespace tilewright::test {

/// Sequences of these lengths.
inline SharedSequences sequences_of(const std::vector<packed_calls::Lengths>& lengths) {
  SharedSequences sequences = {
      .num_q_heads = 4, .num_kv_heads = 2, .q_begin = {0}, .kv_begin = {0}};
  for (const packed_calls::Lengths& of : lengths) {
    sequences.q_begin.push_back(sequences.q_begin.back() + of.q);
    sequences.kv_begin.push_back(sequences.kv_begin.back() + of.kv);
  }
  return sequences;
}

/// All tensors of a call of forward and one of backward.
struct PackedTensors {
  Tensor q, k, v, out, lse, dout, dlse, dq, dk, dv;

  /// q, k, v, dout and dlse are filled, and results begin as poison.
  PackedTensors(const Spec& spec, const SharedSequences& whole, std::int64_t rows,
                std::int64_t columns) {
    const auto filled = [&](std::int64_t count, std::int64_t heads, std::int64_t width, int seed) {
      Tensor numbers = packed_calls::random_tensor({count, heads, width}, seed);
      return packed_calls::in_dtype(numbers, spec.dtype);
    };
    const std::int64_t width = spec.head_dim;
    const std::int64_t value_width = spec.value_head_dim();
    q = filled(rows, whole.num_q_heads, width, 1);
    k = filled(columns, whole.num_kv_heads, width, 2);
    v = filled(columns, whole.num_kv_heads, value_width, 3);
    out = filled(rows, whole.num_q_heads, value_width, 4);
    dout = filled(rows, whole.num_q_heads, value_width, 5);
    lse = packed_calls::random_tensor({whole.num_q_heads, rows}, 6);
    dlse = packed_calls::random_tensor({whole.num_q_heads, rows}, 7);
    dq = Tensor::zeros(q.dtype(), q.shape());
    dk = Tensor::zeros(k.dtype(), k.shape());
    dv = Tensor::zeros(v.dtype(), v.shape());
    for (Tensor* result : {&out, &lse, &dq, &dk, &dv}) {
      std::memset(result->data(), 0xff, static_cast<std::size_t>(result->bytes()));
    }
  }
  PackedTensors(const Spec& spec, const SharedSequences& whole)
      : PackedTensors(spec, whole, whole.q_begin.back(), whole.kv_begin.back()) {}

  /// A rank's rows of the whole.
  PackedTensors(const Spec& spec, const SharedSequences& whole, const PackedTensors& all,
                const ContextPlan& plan)
      : PackedTensors(spec, whole, plan.q_rows(), plan.kv_rows()) {
    std::int64_t row = 0;
    std::int64_t column = 0;
    for (const Shard& shard : plan.shards()) {
      for (const auto& of : {&PackedTensors::q, &PackedTensors::dout}) {
        copy_rows(all.*of, shard.q_begin, this->*of, row, shard.q_len, 0);
      }
      copy_rows(all.dlse, shard.q_begin, dlse, row, shard.q_len, 1);
      for (const auto& of : {&PackedTensors::k, &PackedTensors::v}) {
        copy_rows(all.*of, shard.kv_begin, this->*of, column, shard.kv_len, 0);
      }
      row += shard.q_len;
      column += shard.kv_len;
    }
  }

  void put_into(PackedTensors& all, const ContextPlan& plan) const {
    std::int64_t row = 0;
    std::int64_t column = 0;
    for (const Shard& shard : plan.shards()) {
      for (const auto& of : {&PackedTensors::out, &PackedTensors::dq}) {
        copy_rows(this->*of, row, all.*of, shard.q_begin, shard.q_len, 0);
      }
      copy_rows(lse, row, all.lse, shard.q_begin, shard.q_len, 1);
      for (const auto& of : {&PackedTensors::dk, &PackedTensors::dv}) {
        copy_rows(this->*of, column, all.*of, shard.kv_begin, shard.kv_len, 0);
      }
      row += shard.q_len;
      column += shard.kv_len;
    }
  }

  ForwardTensors forward() const { return {.q = q, .k = k, .v = v, .out = out, .lse = lse.view()}; }
  BackwardTensors backward() const { return backward_tensors(*this, *this); }
};

/// A call of all sequences, without ranks.
class UndividedPacked {
 public:
  UndividedPacked(const Attention& attention, const SharedSequences& whole,
                  const Bindings& bindings, std::map<std::string, TensorView> named)
      : tensors(attention.spec(), whole) {
    std::vector<int> q_begin(whole.q_begin.begin(), whole.q_begin.end());
    std::vector<int> kv_begin(whole.kv_begin.begin(), whole.kv_begin.end());
    const Tensor q_begins = packed_calls::int_tensor(q_begin);
    const Tensor kv_begins = packed_calls::int_tensor(kv_begin);
    const PackedShape shape = {.batch = std::ssize(whole.q_begin) - 1,
                               .num_q_heads = whole.num_q_heads,
                               .num_kv_heads = whole.num_kv_heads,
                               .total_q = whole.q_begin.back(),
                               .total_kv = whole.kv_begin.back()};
    const bool backward = !attention.spec().gradients.empty();
    packed_calls::Workspace memory(attention.workspace_size(shape));
    const auto offsets = [](const std::vector<std::int64_t>& of) {
      return packed_calls::int_tensor({of.begin(), of.end()});
    };
    const Tensor q_offsets = offsets(whole.q_offset);
    const Tensor kv_offsets = offsets(whole.kv_offset);
    Sequences sequences = {.q_begin = q_begins, .kv_begin = kv_begins.view()};
    if (!whole.q_offset.empty()) sequences.q_offset = q_offsets.view();
    if (!whole.kv_offset.empty()) sequences.kv_offset = kv_offsets.view();
    const Plan plan = attention.plan(shape, sequences, bindings,
                                     {.workspace = memory.view(), .backward = backward});
    attention.forward(tensors.forward(), plan, bindings);
    if (!backward) return;
    PackedTensors ones(attention.spec(), whole);
    ones.out = Tensor::copy_of(tensors.out);
    ones.lse = Tensor::copy_of(tensors.lse);
    packed_calls::fill(ones.dout, 1);
    packed_calls::Workspace more(attention.workspace_size(shape, Pass::backward, bindings, false));
    const BackwardOptions options = {.workspace = more.view()};
    attention.backward(ones.backward(), plan, bindings, named, options);
    weight = greatest(ones.dv);
    attention.backward(tensors.backward(), plan, bindings, named, options);
  }

  PackedTensors tensors;
  double weight = 0;  ///< the greatest sum of P over the rows that read one column
};

}  // namespace tilewright::test
