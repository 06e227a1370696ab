#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/attention.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/packed_batch.hpp"

// One sequence in calls with other sequences and other bounds, on any device whose memory the host
// can write to.

namespace tilewright::packed_calls {

/// Where the sequence stands in a call.
struct InvarianceCall {
  std::vector<Lengths> before, after;  ///< sequences, whose rows lie before and after its own
  int rows_behind = 0;                 ///< of q, k and v, that belong to no sequence
  std::int64_t max_kv_len = 0;         ///< PackedShape's
};

/// The bytes of the rows of out, then of lse, of a sequence of these lengths.
inline std::vector<std::byte> rows_in(const Spec& spec, const Device& device, Lengths one,
                                      const InvarianceCall& call) {
  constexpr int heads = 4, kv_heads = 2;
  std::vector<Lengths> all = call.before;
  all.push_back(one);
  all.insert(all.end(), call.after.begin(), call.after.end());
  const std::size_t b = call.before.size();
  std::vector<int> q_begin = {0}, kv_begin = {0};
  for (const Lengths& lengths : all) {
    q_begin.push_back(q_begin.back() + lengths.q);
    kv_begin.push_back(kv_begin.back() + lengths.kv);
  }
  const PackedShape shape = {.batch = static_cast<std::int64_t>(all.size()),
                             .num_q_heads = heads,
                             .num_kv_heads = kv_heads,
                             .total_q = q_begin.back() + call.rows_behind,
                             .total_kv = kv_begin.back() + call.rows_behind,
                             .max_kv_len = call.max_kv_len};
  const std::int64_t dim = spec.head_dim;
  // The sequence's rows are the same in every call.
  const auto filled = [&](std::int64_t rows, std::int64_t width, std::int64_t first, int seed) {
    Tensor tensor = Tensor::zeros(spec.dtype, {rows, width, dim});
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      write_element(tensor.data(), spec.dtype, i, number((i - first * width * dim) * 7 + seed));
    }
    return tensor;
  };
  const Tensor q = filled(shape.total_q, heads, q_begin[b], 1);
  const Tensor k = filled(shape.total_kv, kv_heads, kv_begin[b], 2);
  const Tensor v = filled(shape.total_kv, kv_heads, kv_begin[b], 3);
  Tensor out = Tensor::zeros(spec.dtype, {shape.total_q, heads, dim});
  Tensor lse = Tensor::zeros(f32, {heads, shape.total_q});
  const Attention attention(spec, {.device = device});
  Workspace workspace(attention.workspace_size(shape, true));
  const Tensor q_begins = int_tensor(q_begin), kv_begins = int_tensor(kv_begin);
  const Plan plan = attention.plan(shape, {.q_begin = q_begins, .kv_begin = kv_begins.view()}, {},
                                   {.workspace = workspace.view(), .batch_invariant = true});
  REQUIRE(plan.report().count == 0);
  attention.forward({.q = q, .k = k, .v = v, .out = out, .lse = lse}, plan);

  const std::size_t bytes_of_row = static_cast<std::size_t>(heads * dim) * size_of(spec.dtype);
  const auto* const from = static_cast<const std::byte*>(out.data());
  const auto first = static_cast<std::size_t>(q_begin[b]);
  const auto rows = static_cast<std::size_t>(one.q);
  std::vector<std::byte> bytes(from + first * bytes_of_row, from + (first + rows) * bytes_of_row);
  for (std::int64_t h = 0; h < heads; ++h) {
    const auto* const of_head =
        reinterpret_cast<const std::byte*>(floats(lse) + h * shape.total_q + q_begin[b]);
    bytes.insert(bytes.end(), of_head, of_head + rows * sizeof(float));
  }
  return bytes;
}

/// Has a sequence give the same bits alone and among others.
inline void check_batch_invariance(Spec spec, const Device& device, Lengths one) {
  spec.layout = Layout::packed;
  spec.outputs.lse = true;
  CAPTURE(to_string(spec.dtype), spec.head_dim, spec.mask_mod, spec.tactic.has_value(), one.q,
          one.kv);
  const std::vector<std::byte> alone = rows_in(spec, device, one, {});
  const InvarianceCall calls[] = {
      {.before = {{1, 40}}, .after = {}, .rows_behind = 200, .max_kv_len = one.kv},
      {.before = {{130, 77}, {0, 5}, {3, 0}},
       .after = {{64, 500}},
       .max_kv_len = std::max(600, one.kv)},
      {.before = {}, .after = {{200, 200}, {1, 1}, {1, 900}}, .rows_behind = 9}};
  for (std::size_t i = 0; i < std::size(calls); ++i) {
    CAPTURE(i);
    CHECK(rows_in(spec, device, one, calls[i]) == alone);
  }
}

}  // namespace tilewright::packed_calls
