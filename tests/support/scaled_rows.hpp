#pragma once

#include "appended_rows.hpp"
#include "base/error.hpp"
#include "runtime/io/float16.hpp"

// Appends to pools whose values have scales, for tests on any device whose memory is the host's.

namespace tilewright::scaled_rows {

using namespace appended_rows;

/// k has a scale for each token and head, v one for each head or, if `by_column`, for each sequence
/// and column.
inline Spec scaled_spec(DType dtype, DType kv_dtype, bool by_column = false) {
  Spec spec = append_spec(dtype, kv_dtype);
  spec.k_scale = "k_scales(kv_token, h_kv)";
  spec.v_scale = by_column ? "0.25f * (1 + b) + 0.125f * kv_idx" : "v_scales[h_kv]";
  spec.buffers = {
      {"k_scales", {.dtype = f32, .shape = {NamedDim::total_kv, NamedDim::num_kv_heads}}},
      {"v_scales", {.dtype = f32, .shape = {NamedDim::num_kv_heads}}}};
  if (by_column) spec.buffers.erase("v_scales");
  return spec;
}

struct Scales {
  Tensor of_k;  // [total_kv, kv_heads]
  Tensor of_v;  // [kv_heads]

  Scales(std::int64_t total_kv, int kv_heads)
      : of_k(Tensor::zeros(f32, {total_kv, kv_heads})), of_v(Tensor::zeros(f32, {kv_heads})) {
    for (std::int64_t i = 0; i < of_k.numel(); ++i)
      floats(of_k)[i] = 0.003f + 0.0007f * static_cast<float>(i % 11);
    for (std::int64_t i = 0; i < kv_heads; ++i)
      floats(of_v)[i] = 0.02f + 0.01f * static_cast<float>(i);
  }
};

/// Floats rounded to any dtype.
inline Tensor stored_in(const Tensor& tensor, DType dtype) {
  Tensor copy = Tensor::zeros(dtype, tensor.shape());
  const auto* const from = static_cast<const float*>(tensor.data());
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    write_element(copy.data(), dtype, i, static_cast<double>(from[i]));
  }
  return copy;
}

/// Appends by the plan and, unless v's scale is by columns, by slots: each new row is stored as the
/// nearest numbers to its own divided by their scales, clamped, and nothing else changes.
inline void check_scaled_append(const Attention& attention, std::int64_t page_size,
                                TableForm form) {
  const Spec& spec = attention.spec();
  const DType stored = spec.key_value_dtype();
  const bool by_column = !spec.buffers.contains("v_scales");
  CAPTURE(to_string(spec.dtype), to_string(stored), page_size, by_column);
  const Batch batch = mixed_batch();
  const PagedBatch paged(batch, page_size, form);
  const Step step(batch, paged);
  const PackedShape shape = paged.shape(batch);
  Scales scales(shape.total_kv, batch.kv_heads);
  SnippetInputs inputs = {.buffers = {{"k_scales", scales.of_k}}};
  if (!by_column) inputs.buffers.emplace("v_scales", scales.of_v);
  const Bindings bindings = attention.bind(inputs);
  const Tensor k_new = in_dtype(step.k_new, spec.dtype), v_new = in_dtype(step.v_new, spec.dtype);
  Tensor wanted_k = stored_in(step.k, stored), wanted_v = stored_in(step.v, stored);
  for (std::size_t b = 0; b < batch.lengths.size(); ++b) {
    const auto [q_len, kv_len] = batch.lengths[b];
    for (std::int64_t row = std::max(0, q_len - kv_len); row < q_len; ++row) {
      const std::int64_t column = kv_len - q_len + row, from = batch.q_begins[b] + row;
      const std::int64_t slot = slot_of(paged, static_cast<std::int64_t>(b), column);
      for (std::int64_t i = 0; i < std::int64_t{batch.kv_heads} * batch.dim; ++i) {
        const std::int64_t h = i / batch.dim, width = std::int64_t{batch.kv_heads} * batch.dim;
        const auto put = [&](Tensor& to, const Tensor& fresh, float scale) {
          const auto x =
              static_cast<float>(read_element(fresh.data(), spec.dtype, from * width + i));
          write_element(to.data(), stored, slot * width + i, static_cast<double>(x / scale));
        };
        put(wanted_k, k_new, floats(scales.of_k)[slot * batch.kv_heads + h]);
        put(wanted_v, v_new,
            by_column ? 0.25f * static_cast<float>(1 + b) + 0.125f * static_cast<float>(column)
                      : floats(scales.of_v)[h]);
      }
    }
  }
  const auto require_appended = [&](const NewRows& rows, const Plan* plan) {
    Tensor k = stored_in(step.k, stored), v = stored_in(step.v, stored);
    attention.append(rows, k, v, plan, bindings);
    REQUIRE(same_bits(k, wanted_k));
    REQUIRE(same_bits(v, wanted_v));
  };
  Workspace workspace(attention.workspace_size(shape));
  const Tensor q_begin = int_tensor(batch.q_begins);
  const Plan plan =
      attention.plan(shape, paged.sequences(q_begin), bindings, {.workspace = workspace.view()});
  NewRows rows = {.k_new = k_new, .v_new = v_new};
  require_appended(rows, &plan);
  Tensor slots = Tensor::zeros(i64, {static_cast<std::int64_t>(step.slots.size())});
  std::copy(step.slots.begin(), step.slots.end(), static_cast<std::int64_t*>(slots.data()));
  rows.slots = slots.view();
  if (!by_column) return require_appended(rows, nullptr);
  try {
    require_appended(rows, nullptr);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    CHECK(error.message() == "v_scale names b, which slots do not say");
  }
}

}  // namespace tilewright::scaled_rows
