#pragma once

#include <functional>
#include <string>

#include "appended_rows.hpp"
#include "base/error.hpp"
#include "refusal.hpp"
#include "runtime/io/float16.hpp"

// Attention::quantise, for tests on any device whose memory is the host's.

namespace tilewright::quantised {

using namespace appended_rows;

/// A spec whose k and v have one byte, with a scale for each kv head.
inline Spec quantised_spec(DType kv_dtype, Layout layout, Layout kv_layout, std::int64_t dim = 24) {
  Spec spec = {.dtype = bf16, .head_dim = dim, .layout = layout, .kv_dtype = kv_dtype};
  if (kv_layout != layout) spec.kv_layout = kv_layout;
  spec.k_scale = "k_scales[h_kv]";
  spec.v_scale = "0.5f";
  spec.buffers = {{"k_scales", {.dtype = f32, .shape = {NamedDim::num_kv_heads}}}};
  return spec;
}

/// q, k and v of f8e4m3; q's scale is by the head of k that it meets.
inline Spec f8_spec(Layout layout) {
  Spec spec = quantised_spec(f8e4m3, layout, layout);
  spec.dtype = f8e4m3;
  spec.kv_dtype.reset();
  spec.out_dtype = bf16;
  spec.q_scale = "0.25f * k_scales[h_kv]";
  return spec;
}

inline Tensor scales_of_heads(std::int64_t heads) {
  Tensor scales = Tensor::zeros(f32, {heads});
  for (std::int64_t h = 0; h < heads; ++h)
    floats(scales)[h] = 0.003f + 0.002f * static_cast<float>(h);
  return scales;
}

/// Full of a number that no test stores, so that rows which are left alone are seen.
inline Tensor untouched(DType dtype, std::span<const std::int64_t> shape) {
  Tensor tensor = Tensor::zeros(dtype, shape);
  std::memset(tensor.data(), 0x2b, static_cast<std::size_t>(tensor.bytes()));
  return tensor;
}

/// Rows of a tensor, counted over its batches, that are stored, and by what they are divided: of
/// which head. A scale of 0: the row stays as it is.
using ScaleOf = std::function<float(std::int64_t row, std::int64_t head)>;

/// What `to` holds of `from`, [rows, heads, width] with any batches before.
inline Tensor wanted_of(const Tensor& from, DType stored, std::int64_t heads,
                        const ScaleOf& scale_of) {
  Tensor wanted = untouched(stored, from.shape());
  const std::int64_t width = from.shape().back();
  for (std::int64_t i = 0; i < from.numel(); ++i) {
    const float scale = scale_of(i / width / heads, i / width % heads);
    if (scale == 0) continue;
    const auto x = static_cast<float>(read_element(from.data(), from.dtype(), i));
    write_element(wanted.data(), stored, i, static_cast<double>(x / scale));
  }
  return wanted;
}

/// Without forward, which no test here needs.
inline Attention quantising(const Spec& spec, const Device& device) {
  return Attention(spec, {.device = device, .masks_only = true, .quantise = true});
}

/// Dense k from each dtype to each of one byte; aligned and not, as bhsd and as bshd.
inline void check_dense(const Device& device) {
  for (const DType stored : {f8e4m3, f8e5m2, i8}) {
    const Attention attention =
        quantising(quantised_spec(stored, Layout::bshd, Layout::bshd), device);
    Tensor scales = scales_of_heads(3);
    const Bindings bindings = attention.bind({.buffers = {{"k_scales", scales}}});
    for (const DType dtype : {f32, f16, bf16}) {
      CAPTURE(to_string(stored), to_string(dtype));
      const Tensor from = in_dtype(random_tensor({2, 37, 3, 24}, 1), dtype);
      Tensor to = untouched(stored, from.shape());
      attention.quantise(from, to, nullptr, Operand::k, bindings);
      const ScaleOf by_head = [&](std::int64_t, std::int64_t h) { return floats(scales)[h]; };
      CHECK(same_bits(to, wanted_of(from, stored, 3, by_head)));
      attention.quantise(from, to, nullptr, Operand::v, bindings);
      CHECK(same_bits(to,
                      wanted_of(from, stored, 3, [](std::int64_t, std::int64_t) { return 0.5f; })));
    }
  }
}

/// Views with strides of their own: [batch, heads, rows, dim] out of rows that lie apart.
inline void check_strides(const Device& device) {
  const Attention attention =
      quantising(quantised_spec(f8e4m3, Layout::bhsd, Layout::bhsd), device);
  Tensor scales = scales_of_heads(2);
  const Bindings bindings = attention.bind({.buffers = {{"k_scales", scales}}});
  const Tensor from = random_tensor({1, 19, 2, 24}, 1);
  TensorView rows = from.view();
  rows.shape = {1, 2, 19, 24};
  rows.strides = {19 * 48, 24, 48, 1};
  Tensor padded = untouched(f8e4m3, std::array<std::int64_t, 4>{1, 2, 19, 27});
  TensorView to = padded.view();
  to.shape[3] = 24;
  attention.quantise(rows, to, nullptr, Operand::k, bindings);
  Tensor wanted = untouched(f8e4m3, padded.shape());
  for (std::int64_t i = 0; i < std::int64_t{2} * 19 * 24; ++i) {
    const std::int64_t h = i / 24 / 19, row = i / 24 % 19, d = i % 24;
    const float x = static_cast<const float*>(from.data())[(row * 2 + h) * 24 + d];
    write_element(wanted.data(), f8e4m3, (h * 19 + row) * 27 + d,
                  static_cast<double>(x / floats(scales)[h]));
  }
  CHECK(same_bits(padded, wanted));
}

/// With a shape q's scale may name the head of k, and positions count from the offsets.
inline void check_shape(const Device& device) {
  Spec spec = f8_spec(Layout::bhsd);
  spec.k_scale = "0.25f * (1 + b) + 0.125f * kv_idx";
  const Attention attention = quantising(spec, device);
  Tensor scales = scales_of_heads(2);
  const Bindings bindings = attention.bind({.buffers = {{"k_scales", scales}}});
  const Shape shape = {.batch = 2,
                       .num_q_heads = 6,
                       .num_kv_heads = 2,
                       .q_len = 5,
                       .kv_len = 20,
                       .q_offset = 3,
                       .kv_offset = 7};
  const Tensor q = random_tensor({2, 6, 5, 24}, 1), k = random_tensor({2, 2, 20, 24}, 2);
  Tensor to = untouched(f8e4m3, q.shape());
  attention.quantise(q, to, shape, Operand::q, bindings);
  // bhsd has rows inside of heads.
  CHECK(same_bits(to, wanted_of(q, f8e4m3, 5, [&](std::int64_t head, std::int64_t) {
                    return 0.25f * floats(scales)[head % 6 / 3];
                  })));
  Tensor to_k = untouched(f8e4m3, k.shape());
  attention.quantise(k, to_k, shape, Operand::k, bindings);
  CHECK(same_bits(to_k, wanted_of(k, f8e4m3, 20, [&](std::int64_t head, std::int64_t row) {
                    return 0.25f * static_cast<float>(1 + head / 2) +
                           0.125f * static_cast<float>(row + 7);
                  })));
  CHECK(test::refusal([&] { attention.quantise(q, to, nullptr, Operand::q, bindings); }) ==
        "q_scale names h_kv, which its tensor alone does not say");
}

/// With a plan rows of sequences alone are stored, by their positions; without one all of them.
inline void check_packed(const Device& device) {
  Spec spec = f8_spec(Layout::packed);
  spec.q_scale = "0.25f * (1 + b) + 0.125f * q_idx * q_idx";
  spec.k_scale = "0.25f * (1 + b) + 0.125f * kv_idx";
  spec.v_scale = "0.5f + kv_token % 5";
  const Attention attention = quantising(spec, device);
  Batch batch = mixed_batch();
  const BatchTensors staged(batch, f32);
  Tensor scales = scales_of_heads(batch.kv_heads);
  const Bindings bindings = attention.bind({.buffers = {{"k_scales", scales}}});
  Workspace workspace(attention.workspace_size(batch.shape()));
  const Plan plan =
      attention.plan(batch.shape(), staged.sequences(), bindings, {.workspace = workspace.view()});
  std::vector<float> of_q(static_cast<std::size_t>(batch.q.shape()[0]));
  std::vector<float> of_k(static_cast<std::size_t>(batch.k.shape()[0])), of_v(of_k.size());
  for (std::size_t b = 0; b < batch.lengths.size(); ++b) {
    const float of_sequence = 0.25f * static_cast<float>(1 + b);
    for (int row = 0; row < batch.lengths[b].q; ++row) {
      const auto q_idx = static_cast<float>(batch.lengths[b].kv - batch.lengths[b].q + row);
      of_q[static_cast<std::size_t>(batch.q_begins[b] + row)] =
          of_sequence + 0.125f * q_idx * q_idx;
    }
    for (int row = 0; row < batch.lengths[b].kv; ++row) {
      const auto token = static_cast<std::size_t>(batch.kv_begins[b] + row);
      of_k[token] = of_sequence + 0.125f * static_cast<float>(row);
      of_v[token] = 0.5f + static_cast<float>(token % 5);
    }
  }
  const auto check = [&](const Tensor& from, std::int64_t heads, Operand which,
                         const std::vector<float>& of_row) {
    Tensor to = untouched(f8e4m3, from.shape());
    attention.quantise(from, to, &plan, which, bindings);
    CHECK(same_bits(to, wanted_of(from, f8e4m3, heads, [&](std::int64_t row, std::int64_t) {
                      return of_row[static_cast<std::size_t>(row)];
                    })));
  };
  check(batch.q, batch.heads, Operand::q, of_q);
  check(batch.k, batch.kv_heads, Operand::k, of_k);
  check(batch.v, batch.kv_heads, Operand::v, of_v);
  Tensor to = untouched(f8e4m3, batch.v.shape());
  attention.quantise(batch.v, to, nullptr, Operand::v, bindings);
  CHECK(
      same_bits(to, wanted_of(batch.v, f8e4m3, batch.kv_heads, [](std::int64_t row, std::int64_t) {
                  return 0.5f + static_cast<float>(row % 5);
                })));
  CHECK(test::refusal([&] { attention.quantise(batch.k, to, nullptr, Operand::k, bindings); }) ==
        "k_scale names b, which its tensor alone does not say");
}

/// Pools: through the page table, or all rows.
inline void check_paged(const Device& device, std::int64_t page_size, TableForm form, bool kv_new) {
  CAPTURE(page_size, static_cast<int>(form), kv_new);
  Spec spec = quantised_spec(i8, Layout::packed, Layout::paged);
  spec.kv_new = kv_new;
  spec.k_scale = "0.0625f * (1 + b) + 0.03125f * kv_idx";
  spec.v_scale = "0.015625f * (1 + kv_token % 7) * (1 + h_kv)";
  const Attention attention = quantising(spec, device);
  const Batch batch = mixed_batch();
  const PagedBatch paged(batch, page_size, form);
  Tensor scales = scales_of_heads(batch.kv_heads);
  const Bindings bindings = attention.bind({.buffers = {{"k_scales", scales}}});
  const PackedShape shape = paged.shape(batch);
  Workspace workspace(attention.workspace_size(shape));
  const Tensor q_begin = int_tensor(batch.q_begins);
  const Plan plan =
      attention.plan(shape, paged.sequences(q_begin), bindings, {.workspace = workspace.view()});
  std::vector<float> of_row(static_cast<std::size_t>(shape.total_kv));
  for (std::size_t b = 0; b < batch.lengths.size(); ++b) {
    const auto [q_len, kv_len] = batch.lengths[b];
    for (int column = 0; column < (kv_new ? std::max(kv_len - q_len, 0) : kv_len); ++column) {
      of_row[static_cast<std::size_t>(slot_of(paged, static_cast<std::int64_t>(b), column))] =
          0.0625f * static_cast<float>(1 + b) + 0.03125f * static_cast<float>(column);
    }
  }
  Tensor to = untouched(i8, paged.k.shape());
  attention.quantise(paged.k, to, &plan, Operand::k, bindings);
  CHECK(same_bits(to, wanted_of(paged.k, i8, batch.kv_heads, [&](std::int64_t row, std::int64_t) {
                    return of_row[static_cast<std::size_t>(row)];
                  })));
  const ScaleOf by_token = [](std::int64_t row, std::int64_t h) {
    return 0.015625f * static_cast<float>(1 + row % 7) * static_cast<float>(1 + h);
  };
  to = untouched(i8, paged.v.shape());
  attention.quantise(paged.v, to, nullptr, Operand::v, bindings);
  CHECK(same_bits(to, wanted_of(paged.v, i8, batch.kv_heads, by_token)));
}

}  // namespace tilewright::quantised
