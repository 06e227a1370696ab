#include "cli/bench/variants.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"

namespace tilewright::cli {
namespace {

Spec variant(const Spec& dense, std::string name, std::string score_mod, std::string mask_mod) {
  Spec spec = dense;
  spec.name = std::move(name);
  spec.score_mod = std::move(score_mod);
  spec.mask_mod = std::move(mask_mod);
  return spec;
}

Spec with_buffer(Spec spec, const std::string& name, BufferSpec buffer) {
  spec.buffers.emplace(name, std::move(buffer));
  return spec;
}

BufferSpec per_head(DType dtype, std::vector<BufferDim> more) {
  BufferSpec buffer{.dtype = dtype, .shape = {NamedDim::num_q_heads}};
  buffer.shape.insert(buffer.shape.end(), more.begin(), more.end());
  return buffer;
}

// Documents packed one after the other: sorted numbers, some twenty rows to hundreds of them each.
BufferSpec documents() {
  return {.dtype = DType::i32,
          .shape = {NamedDim::batch, NamedDim::kv_len},
          .range = std::array<double, 2>{0, 15},
          .sorted = true};
}

}  // namespace

Spec dense_variant(DType dtype, std::int64_t head_dim) {
  return {.name = "dense", .dtype = dtype, .head_dim = head_dim};
}

Spec causal_variant(DType dtype, std::int64_t head_dim) {
  return variant(dense_variant(dtype, head_dim), "causal", "", "q_idx >= kv_idx");
}

Spec packed_documents_variant(DType dtype, std::int64_t head_dim) {
  Spec spec = variant(dense_variant(dtype, head_dim), "documents_by_token", "",
                      "q_idx >= kv_idx && doc[q_token] == doc[kv_token]");
  spec.layout = Layout::packed;
  return with_buffer(std::move(spec), "doc",
                     {.dtype = DType::i32,
                      .shape = {NamedDim::total_kv},
                      .range = std::array<double, 2>{0, 11},
                      .sorted = true});
}

Spec block_sparse_variant(DType dtype, std::int64_t head_dim) {
  Spec spec = variant(dense_variant(dtype, head_dim), "block_sparse", "",
                      "q_idx >= kv_idx && (q_idx / 64 - kv_idx / 64 < 16 || "
                      "(kv_idx / 64 + 1) % 8 == 0)");
  // Blocks of 64 rows would be q tiles of 64 rows, which take 1.4 to 1.8 times as long on Hopper.
  spec.block = {192, 64};
  return spec;
}

std::vector<Spec> mod_variants(DType dtype, std::int64_t head_dim) {
  const Spec dense = dense_variant(dtype, head_dim);
  const std::string causal = "q_idx >= kv_idx";
  const std::string same_document = "doc(b, q_idx) == doc(b, kv_idx)";
  const std::string alibi = "score + slopes[h] * (kv_idx - q_idx)";
  return {
      dense,
      variant(dense, "causal", "", causal),
      variant(dense, "window_256", "", causal + " && q_idx - kv_idx < 256"),
      variant(dense, "prefix_lm", "", "kv_idx < 256 || " + causal),
      with_buffer(variant(dense, "documents", "", same_document), "doc", documents()),
      with_buffer(variant(dense, "alibi", alibi, ""), "slopes", per_head(DType::f32, {})),
      with_buffer(variant(dense, "alibi_causal", alibi, causal), "slopes",
                  per_head(DType::f32, {})),
      variant(dense, "softcap", "30 * tanh(score / 30)", ""),
      with_buffer(variant(dense, "relative_bias",
                          "score + bias(h, clamp(kv_idx - q_idx, -256, 256) + 256)", ""),
                  "bias", per_head(DType::f32, {std::int64_t{513}})),
  };
}

std::vector<Spec> long_mod_variants(DType dtype, std::int64_t head_dim) {
  const Spec dense = dense_variant(dtype, head_dim);
  const std::string causal = "q_idx >= kv_idx";
  const std::string same_document = causal + " && doc[q_idx] == doc[kv_idx]";
  const std::string alibi = "score + slopes[h] * (kv_idx - q_idx)";
  const std::string softcap = "50 * tanh(score / 50)";
  const BufferSpec slopes = {
      .dtype = DType::f32, .shape = {NamedDim::num_q_heads}, .range = std::array{0.004, 0.5}};
  const BufferSpec doc = {.dtype = DType::i32,
                          .shape = {NamedDim::kv_len},
                          .range = std::array<double, 2>{0, 11},
                          .sorted = true};
  const BufferSpec bias = {.dtype = DType::f32, .shape = {std::int64_t{2 * 8192}}};
  return {
      dense,
      variant(dense, "causal", "", causal),
      variant(dense, "window_1024", "", causal + " && q_idx - kv_idx < 1024"),
      with_buffer(variant(dense, "documents_causal", "", same_document), "doc", doc),
      variant(dense, "prefix_2048", "", causal + " || kv_idx < 2048"),
      variant(dense, "natten_2d", "",
              "abs(q_idx / 128 - kv_idx / 128) <= 6 && abs(q_idx % 128 - kv_idx % 128) <= 6"),
      with_buffer(variant(dense, "alibi_causal", alibi, causal), "slopes", slopes),
      with_buffer(with_buffer(variant(dense, "alibi_documents", alibi, same_document), "doc", doc),
                  "slopes", slopes),
      variant(dense, "softcap_causal", softcap, causal),
      with_buffer(variant(dense, "alibi", alibi, ""), "slopes", slopes),
      variant(dense, "softcap", softcap, ""),
      with_buffer(variant(dense, "relative_bias", "score + bias[q_idx - kv_idx + 8192]", ""),
                  "bias", bias),
  };
}

Spec long_variant(std::string_view name, DType dtype, std::int64_t head_dim) {
  for (Spec& spec : long_mod_variants(dtype, head_dim)) {
    if (spec.name == name) return std::move(spec);
  }
  throw Error(ErrorCode::internal, fmt::format("there is no variant \"{}\"", name));
}

std::vector<Spec> mask_variants() {
  std::vector<Spec> masks;
  for (Spec& spec : mod_variants(DType::f32, 16)) {
    if (!spec.mask_mod.empty() && spec.score_mod.empty()) masks.push_back(std::move(spec));
  }
  const Spec dense = dense_variant(DType::f32, 16);
  masks.push_back(variant(dense, "dilated", "", "q_idx >= kv_idx && (q_idx - kv_idx) % 4 == 0"));
  return masks;
}

}  // namespace tilewright::cli
