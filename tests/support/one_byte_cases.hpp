#pragma once

#include <string>
#include <utility>
#include <vector>

#include "verify/random_sequences.hpp"

/// Specs whose k and v have elements of one byte, with calls of them: what every backend computes.
namespace tilewright::one_byte {

struct DenseCase {
  Spec spec;
  Shape shape;
};

struct PackedCase {
  Spec spec;
  verify::PackedLengths lengths;
};

inline Spec spec_of(DType dtype, DType kv_dtype, std::int64_t head_dim) {
  return {.dtype = dtype,
          .head_dim = head_dim,
          .kv_dtype = kv_dtype,
          .k_scale = kv_dtype == i8 ? "0.03f" : "0.5f",
          .v_scale = kv_dtype == i8 ? "0.03f" : "0.25f",
          .outputs = {.lse = true}};
}

inline Spec packed_spec_of(DType dtype, DType kv_dtype, std::int64_t head_dim, Layout kv_layout) {
  Spec spec = spec_of(dtype, kv_dtype, head_dim);
  spec.layout = Layout::packed;
  spec.kv_layout = kv_layout;
  spec.mask_mod = "q_idx >= kv_idx";
  return spec;
}

/// q, k and v of f8e4m3. An out of 8 bits is clamped here and there.
inline Spec float8_spec(std::int64_t head_dim, DType out_dtype, std::string mask_mod) {
  Spec spec = spec_of(f8e4m3, f8e4m3, head_dim);
  spec.kv_dtype.reset();
  spec.mask_mod = std::move(mask_mod);
  spec.out_dtype = out_dtype;
  spec.q_scale = "0.75f";
  if (out_dtype == f8e4m3) spec.out_scale = "0.0005f";
  return spec;
}

inline std::vector<DenseCase> dense_cases() {
  const Shape shape{.batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 70, .kv_len = 90};
  Spec bshd = spec_of(f16, f8e5m2, 40);
  bshd.layout = Layout::bshd;
  Spec wide = spec_of(bf16, f8e4m3, 80);
  wide.v_head_dim = 64;
  Spec masked = spec_of(bf16, i8, 64);
  masked.mask_mod = "q_idx >= kv_idx";
  masked.block = {32, 32};
  // More columns of v than a block of four warpgroups has registers for.
  Spec wide_values = spec_of(bf16, f8e4m3, 256);
  wide_values.mask_mod = "q_idx >= kv_idx - 190";
  Spec eight = spec_of(f8e4m3, f8e4m3, 112);  // of q too
  eight.kv_dtype.reset();
  eight.out_dtype = bf16;
  eight.q_scale = "0.75f";
  return {
      {eight, {.batch = 1, .num_q_heads = 16, .num_kv_heads = 1, .q_len = 57, .kv_len = 57}},
      {float8_spec(128, bf16, "q_idx >= kv_idx"),
       {.num_q_heads = 2, .num_kv_heads = 1, .q_len = 300, .kv_len = 300}},
      {float8_spec(256, f8e4m3, ""),
       {.num_q_heads = 2, .num_kv_heads = 1, .q_len = 130, .kv_len = 231}},
      {float8_spec(64, f32, "q_idx >= kv_idx && q_idx % 5 != 0"),
       {.num_q_heads = 2, .num_kv_heads = 1, .q_len = 200, .kv_len = 430}},
      {spec_of(f16, i8, 192), {.num_q_heads = 2, .num_kv_heads = 1, .q_len = 140, .kv_len = 470}},
      {wide_values, {.num_q_heads = 2, .num_kv_heads = 1, .q_len = 140, .kv_len = 330}},
      {spec_of(bf16, f8e4m3, 64), shape},
      {spec_of(f16, f8e4m3, 128), shape},
      {spec_of(f32, f8e4m3, 32), shape},
      {spec_of(f32, i8, 24), shape},
      {bshd, shape},
      {wide, shape},
      {masked, shape}};
}

inline std::vector<PackedCase> packed_cases() {
  using Table = verify::PageOptions::Table;
  const auto lengths = [](std::int64_t q_heads, std::int64_t kv_heads,
                          std::vector<verify::PackedLengths::Sequence> sequences,
                          verify::PageOptions pages) {
    return verify::PackedLengths{.num_q_heads = q_heads,
                                 .num_kv_heads = kv_heads,
                                 .sequences = std::move(sequences),
                                 .kv_offset = 0,
                                 .pages = pages};
  };
  // Some sequences are decoded, one has too many rows for that.
  const std::vector<verify::PackedLengths::Sequence> mixed = {
      {1, 332}, {5, 18}, {40, 163}, {1, 77}};
  std::vector<PackedCase> cases = {
      {packed_spec_of(bf16, f8e4m3, 64, Layout::packed), lengths(4, 2, mixed, {})},
      {packed_spec_of(bf16, f8e4m3, 128, Layout::paged), lengths(8, 2, mixed, {.page_size = 16})},
      {packed_spec_of(bf16, i8, 96, Layout::paged), lengths(6, 2, mixed, {.page_size = 16})},
      {packed_spec_of(f16, f8e5m2, 72, Layout::paged), lengths(5, 1, mixed, {.page_size = 3})},
      {packed_spec_of(f16, i8, 256, Layout::paged),
       lengths(4, 1, mixed, {.page_size = 64, .pages = 0, .table = Table::flat})},
      {packed_spec_of(f32, f8e4m3, 24, Layout::paged),
       lengths(2, 1, mixed, {.page_size = 400, .pages = 0, .table = Table::none})}};
  PackedCase eight{spec_of(f8e4m3, f8e4m3, 64),
                   lengths(8, 8, {{128, 128}, {57, 57}, {1, 1}, {60, 60}}, {})};
  eight.spec.kv_dtype.reset();
  eight.spec.layout = Layout::packed;
  eight.spec.q_scale = "0.75f";
  eight.spec.out_dtype = f8e4m3;
  eight.spec.out_scale = "0.125f";
  cases.push_back(std::move(eight));
  PackedCase of_two_dims{float8_spec(64, bf16, "q_idx >= kv_idx"),
                         lengths(4, 2, {{130, 300}, {57, 57}, {0, 9}, {7, 3}, {64, 0}}, {})};
  of_two_dims.spec.layout = Layout::packed;
  of_two_dims.spec.v_head_dim = 128;
  cases.push_back(std::move(of_two_dims));
  // One warp brings K and V.
  cases.push_back({packed_spec_of(bf16, f8e4m3, 256, Layout::paged),
                   lengths(2, 1, {{57, 57}, {0, 9}, {150, 230}}, {.page_size = 16})});
  cases.back().spec.head_dim = 208;
  cases.back().spec.v_head_dim = 256;
  // Pages of more rows than a tile has for each of those who bring it.
  cases.push_back({packed_spec_of(f16, f8e4m3, 128, Layout::paged),
                   lengths(4, 2, {{57, 57}, {130, 200}, {0, 9}, {200, 530}}, {.page_size = 64})});
  cases.back().spec.v_head_dim = 64;
  for (const DType dtype : {f16, f32}) {
    PackedCase context{
        packed_spec_of(dtype, f8e4m3, 40, Layout::paged),
        lengths(4, 2, {{130, 171}, {0, 40}, {9, 9}, {5, 2}, {1, 90}}, {.page_size = 17})};
    context.spec.kv_new = context.lengths.has_new_rows = true;
    cases.push_back(std::move(context));
  }
  return cases;
}

}  // namespace tilewright::one_byte
