#include "tests/mutants/decode_calls.hpp"

#include <cstdint>

#include "tests/mutants/packed_calls.hpp"
#include "verify/random_inputs.hpp"
#include "verify/random_sequences.hpp"

namespace tilewright::mutants {
namespace {

constexpr std::int64_t kQHeads = 6, kKvHeads = 2;

std::string wrong_packed(const Attention& attention, std::int64_t page_size,
                         const Toolchain& kernels) {
  const Spec& spec = attention.spec();
  // New rows are a sequence's last; one without columns has none.
  const verify::PackedLengths lengths = {
      .num_q_heads = kQHeads,
      .num_kv_heads = kKvHeads,
      .sequences = {{1, 700}, {3, 95}, {0, 9}, {2, 1300}, {spec.kv_new ? 0 : 1, 0}, {40, 64}},
      .kv_offset = spec.kv_new ? 0 : 5,
      .pages = {.page_size = spec.is_paged() ? page_size : 0},
      .has_new_rows = spec.kv_new};
  const verify::PackedInputs packed = verify::random_packed_inputs(spec, lengths, 1);
  return wrong_by_reference(packed.problem(), attention, kernels);
}

std::string wrong_dense(const Attention& attention, std::int64_t q_len, const Toolchain& kernels) {
  const Shape shape = {.batch = 2,
                       .num_q_heads = kQHeads,
                       .num_kv_heads = kKvHeads,
                       .q_len = q_len,
                       .kv_len = 700,
                       .q_offset = 600,
                       .kv_offset = 5};
  const verify::Inputs inputs = verify::random_inputs(attention.spec(), shape, 1);
  return wrong_by_reference(inputs.problem(), attention, kernels, /*decode=*/true);
}

}  // namespace

std::vector<Spec> decode_specs() {
  const BufferSpec of_heads{.dtype = DType::f32, .shape = {NamedDim::num_q_heads}};
  Spec window = {.name = "decode under a window",
                 .dtype = DType::bf16,
                 .head_dim = 64,
                 .layout = Layout::packed,
                 .kv_layout = Layout::paged,
                 .score_mod = "20.0f * tanh(score / 20.0f) + 0.1 * of_heads[h] * (kv_idx % 7)",
                 .mask_mod = "q_idx >= kv_idx && q_idx - kv_idx < 900",
                 .buffers = {{"of_heads", of_heads}},
                 .outputs = {.lse = true}};
  window.sink = "of_heads[h]";
  Spec lists = {.name = "decode by lists of heads",
                .dtype = DType::f16,
                .head_dim = 72,
                .v_head_dim = 40,
                .layout = Layout::packed,
                .mask_mod = "q_idx >= kv_idx && (kv_idx / 128 + h) % 3 != 0",
                .outputs = {.lse = true}};
  Spec bytes = {.name = "decode over bytes with new rows",
                .dtype = DType::f16,
                .head_dim = 128,
                .layout = Layout::packed,
                .kv_layout = Layout::paged,
                .kv_dtype = DType::f8e4m3,
                .mask_mod = "q_idx >= kv_idx",
                .outputs = {.lse = true}};
  bytes.kv_new = true;
  bytes.k_scale = "0.5f + 0.25f * float(kv_idx % 3)";
  bytes.v_scale = "1.5f - 0.25f * float(kv_idx % 5)";
  Spec integers = {.name = "decode over integers",
                   .dtype = DType::bf16,
                   .head_dim = 64,
                   .layout = Layout::packed,
                   .kv_layout = Layout::paged,
                   .kv_dtype = DType::i8,
                   .outputs = {.lse = true}};
  integers.k_scale = integers.v_scale = "0.03f";
  Spec dense = lists;
  dense.name = "dense decode";
  dense.layout = Layout::bhsd;
  Spec whole = {.name = "dense decode without a mask",
                .dtype = DType::bf16,
                .head_dim = 256,
                .outputs = {.lse = true}};
  return {window, lists, bytes, integers, dense, whole};
}

std::string wrong_decode_call(const Attention& attention, const Toolchain& kernels) {
  if (attention.spec().is_packed()) {
    const std::string wrong = wrong_packed(attention, 16, kernels);
    return wrong.empty() ? wrong_packed(attention, 130, kernels) : wrong;
  }
  const std::string wrong = wrong_dense(attention, 3, kernels);
  return wrong.empty() ? wrong_dense(attention, 1, kernels) : wrong;
}

}  // namespace tilewright::mutants
