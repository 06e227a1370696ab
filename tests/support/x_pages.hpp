#pragma once

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "scaled_rows.hpp"
#include "verify/check.hpp"
#include "verify/random_sequences.hpp"
#include "verify/sequences.hpp"
#include "verify/x_pools.hpp"

// Calls whose k and v are in the pages of paged_x, for tests on any device whose memory is the
// host's.

namespace tilewright::x_pages {

struct Case {
  Spec spec;
  verify::PackedLengths lengths;
};

inline Spec spec_of(DType dtype, DType kv_dtype, std::int64_t head_dim,
                    std::int64_t v_head_dim = 0) {
  Spec spec = {.dtype = dtype,
               .head_dim = head_dim,
               .v_head_dim = v_head_dim,
               .layout = Layout::packed,
               .kv_layout = Layout::paged_x,
               .mask_mod = "q_idx >= kv_idx",
               .outputs = {.lse = true}};
  if (kv_dtype != dtype) spec.kv_dtype = kv_dtype;
  if (!is_quantised(kv_dtype)) return spec;
  spec.k_scale = kv_dtype == i8 ? "0.03f" : "0.5f";
  spec.v_scale = "k_scales[kv_token % 7]";
  spec.buffers = {{"k_scales", {.dtype = f32, .shape = {7}, .range = {{0.02, 0.1}}}}};
  return spec;
}

/// Sequences with many rows of q, which the kernels for prefill take, and with few.
inline std::vector<Case> cases() {
  using Table = verify::PageOptions::Table;
  const auto lengths = [](verify::PageOptions pages) {
    return verify::PackedLengths{
        .num_q_heads = 4,
        .num_kv_heads = 2,
        .sequences = {{19, 132}, {1, 65}, {40, 73}, {0, 9}, {33, 0}, {9, 4}},
        .pages = pages};
  };
  Spec window = spec_of(f16, f16, 128, 64);
  window.score_mod = "cap * tanh(score / cap)";
  window.scalars = {{"cap", {.dtype = f32, .default_value = 20}}};
  window.mask_mod = "q_idx >= kv_idx && q_idx - kv_idx < 40";
  window.sink = "0.5f * h";
  Spec tf32 = spec_of(f32, f32, 48, 40);
  tf32.f32_products = F32Products::tf32;
  return {{tf32, lengths({.page_size = 16})},
          {spec_of(f16, f16, 24), lengths({.page_size = 16})},
          {spec_of(f32, f32, 40), lengths({.page_size = 17, .table = Table::flat})},
          {spec_of(bf16, f8e4m3, 80, 64), lengths({.page_size = 32})},
          {spec_of(f32, f16, 16), lengths({.page_size = 140, .table = Table::none})},
          {spec_of(f16, i8, 32), lengths({.page_size = 3})},
          {spec_of(f32, f8e5m2, 48, 32), lengths({.page_size = 1})},
          {window, lengths({.page_size = 64})}};
}

/// The case's numbers, compared with the reference.
inline void check_right(const Case& one, const Device& device) {
  CAPTURE(to_string(one.spec.dtype), to_string(one.spec.key_value_dtype()), one.spec.head_dim);
  const verify::PackedInputs inputs = verify::random_packed_inputs(one.spec, one.lengths, 5);
  const verify::Report report =
      verify::check(one.spec, inputs.problem(), {.attention = {.device = device}});
  for (const std::string& reason : report.reasons()) UNSCOPED_INFO(reason);
  REQUIRE(report.ok);
}

struct Result {
  Tensor out, lse;
};

inline Result forward(const Spec& spec, const verify::PackedLengths& lengths,
                      const Device& device) {
  const verify::PackedInputs inputs = verify::random_packed_inputs(spec, lengths, 5);
  const verify::Problem problem = inputs.problem();
  const Attention attention(spec, {.device = device});
  const Bindings bindings = attention.bind(problem.snippet);
  const PackedShape shape = verify::packed_shape(problem);
  packed_calls::Workspace workspace(attention.workspace_size(shape));
  const Plan plan =
      attention.plan(shape, *problem.sequences, bindings, {.workspace = workspace.view()});
  Result result = {
      Tensor::zeros(spec.output_dtype(), {shape.total_q, shape.num_q_heads, spec.value_head_dim()}),
      Tensor::zeros(f32, {shape.num_q_heads, shape.total_q})};
  attention.forward(
      {.q = problem.q, .k = problem.k, .v = problem.v, .out = result.out, .lse = result.lse.view()},
      plan, bindings);
  return result;
}

/// The same kernel gives the same bits for the same numbers in pages of the kind `paged`.
inline void check_equal_bits(Case one, const Device& device) {
  CAPTURE(to_string(one.spec.dtype), to_string(one.spec.key_value_dtype()), one.spec.head_dim);
  std::erase_if(one.lengths.sequences, [](const verify::PackedLengths::Sequence& sequence) {
    return sequence.q_len > 0 && sequence.q_len <= 16;  // those that a decode kernel would take
  });
  if (device.kind() == Device::Kind::cuda) one.spec.tactic = TacticSpec{.name = "portable"};
  const Result in_x = forward(one.spec, one.lengths, device);
  one.spec.kv_layout = Layout::paged;
  const Result in_pages = forward(one.spec, one.lengths, device);
  CHECK(appended_rows::same_bits(in_x.out, in_pages.out));
  CHECK(appended_rows::same_bits(in_x.lse, in_pages.lse));
}

/// append stores in pools of paged_x what it stores in others.
inline void check_append(DType dtype, DType kv_dtype, const Device& device) {
  using namespace scaled_rows;
  CAPTURE(to_string(dtype), to_string(kv_dtype));
  Batch batch = mixed_batch();
  batch = {.lengths = batch.lengths, .heads = 4, .kv_heads = 2, .dim = 32};
  batch.make();
  const PagedBatch paged(batch, 17, TableForm::rows);
  const Step step(batch, paged);
  const PackedShape shape = paged.shape(batch);
  const Tensor k_new = in_dtype(step.k_new, dtype), v_new = in_dtype(step.v_new, dtype);
  const Tensor q_begin = int_tensor(batch.q_begins);
  Scales scales(shape.total_kv, batch.kv_heads);
  const auto append = [&](Layout layout, Tensor k, Tensor v) {
    Spec spec = scaled_rows::scaled_spec(dtype, kv_dtype);
    spec.head_dim = 32;
    spec.kv_layout = layout;
    const Attention attention(spec, {.device = device, .masks_only = true, .append = true});
    const Bindings bindings =
        attention.bind({.buffers = {{"k_scales", scales.of_k}, {"v_scales", scales.of_v}}});
    Workspace workspace(attention.workspace_size(shape));
    const Plan plan =
        attention.plan(shape, paged.sequences(q_begin), bindings, {.workspace = workspace.view()});
    attention.append({.k_new = k_new, .v_new = v_new}, k, v, &plan, bindings);
    return std::pair(std::move(k), std::move(v));
  };
  const Tensor k = stored_in(step.k, kv_dtype), v = stored_in(step.v, kv_dtype);
  const auto [wanted_k, wanted_v] = append(Layout::paged, Tensor::copy_of(k), Tensor::copy_of(v));
  const auto [found_k, found_v] =
      append(Layout::paged_x, verify::x_pool(k, true), verify::x_pool(v, false));
  CHECK_FALSE(same_bits(wanted_k, k));
  CHECK(same_bits(found_k, verify::x_pool(wanted_k, true)));
  CHECK(same_bits(found_v, verify::x_pool(wanted_v, false)));
}

}  // namespace tilewright::x_pages
