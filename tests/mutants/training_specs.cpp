#include "tests/mutants/training_specs.hpp"

namespace tilewright::mutants {
namespace {

const BufferSpec kOfHeads{.dtype = DType::f32, .shape = {NamedDim::num_q_heads}};
const BufferSpec kSeed{.dtype = DType::i64, .range = {{-0x1p52, 0x1p52}}};

}  // namespace

std::vector<Spec> training_specs() {
  Spec dense = {.name = "training",
                .dtype = DType::f32,
                .head_dim = 24,
                .v_head_dim = 40,
                .score_mod = "score * gain[h] + slope * (kv_idx - q_idx)",
                .mask_mod = "(q_idx + 40 >= kv_idx && kv_idx % 7 != 2) || kv_idx > 140",
                .dropout = "ps[h]",
                .buffers = {{"gain", kOfHeads}, {"ps", kOfHeads}, {"seed", kSeed}},
                .scalars = {{"slope", {.dtype = DType::f32, .default_value = 0.01}}},
                .block = {32, 64},
                .outputs = {.lse = true, .weights = true},
                .gradients = {"q", "k", "v", "gain", "slope"}};
  Spec plain = dense;
  plain.name = "training without dropout and mask";
  plain.dtype = DType::bf16;
  plain.mask_mod.clear();
  plain.dropout.clear();
  plain.buffers.erase("ps");
  plain.buffers.erase("seed");
  plain.gradients = {"k", "v", "slope"};
  Spec packed = {.name = "packed training",
                 .dtype = DType::f16,
                 .head_dim = 32,
                 .layout = Layout::packed,
                 .score_mod = "score + gain[h] * kv_idx",
                 .mask_mod = "q_idx >= kv_idx || (kv_idx > 60 && h != 2)",
                 .dropout = "0.4f",
                 .buffers = {{"gain", kOfHeads}},
                 .scalars = {{"seed", {.dtype = DType::i64}}},
                 .outputs = {.lse = true},
                 .gradients = {"q", "k", "v", "gain"}};
  packed.buffers.at("gain").range = {{-0.02, 0.02}};
  // The portable kernel sums the gradients of k and of v one after the other.
  Spec wide = {.name = "training of wide heads",
               .dtype = DType::f16,
               .head_dim = 250,
               .v_head_dim = 202,
               .score_mod = "score + 0.01 * gain[h] * (kv_idx - q_idx)",
               .mask_mod = "q_idx + 160 >= kv_idx",
               .buffers = {{"gain", kOfHeads}},
               .outputs = {.lse = true},
               .gradients = {"q", "k", "v", "gain"}};
  return {dense, plain, packed, wide};
}

std::vector<Spec> hopper_training_specs() {
  Spec sums = {
      .name = "sums of buffers",
      .dtype = DType::bf16,
      .head_dim = 64,
      .score_mod =
          "score + slopes[h] * (kv_idx - q_idx) * 0.01 + gain * (q_idx % 3) + "
          "column[kv_idx] + row(b, q_idx) * (kv_idx % 5)",
      .mask_mod = "q_idx + 60 >= kv_idx && q_idx != 72",
      .buffers = {{"slopes", kOfHeads},
                  {"column", {.dtype = DType::f32, .shape = {NamedDim::kv_len}}},
                  {"row", {.dtype = DType::f32, .shape = {NamedDim::batch, NamedDim::q_len}}}},
      .scalars = {{"gain", {.dtype = DType::f32, .default_value = 0.5}}},
      .outputs = {.lse = true},
      .gradients = {"q", "k", "v", "slopes", "gain", "column", "row"}};
  Spec bias = {.name = "relative bias",
               .dtype = DType::f16,
               .head_dim = 128,
               .score_mod = "score + bias[q_idx - kv_idx + 340] + own[(q_idx * 7 + kv_idx) % 101]",
               .buffers = {{"bias", {.dtype = DType::f32, .shape = {512}}},
                           {"own", {.dtype = DType::f32, .shape = {101}}}},
               .outputs = {.lse = true},
               .gradients = {"q", "k", "v", "bias", "own"}};
  Spec dropped = {.name = "dropped documents",
                  .dtype = DType::bf16,
                  .head_dim = 128,
                  .score_mod = "12.0f * tanh(score / 12.0f)",
                  .mask_mod = "q_idx / 90 == kv_idx / 90 || kv_idx > 300",
                  .dropout = "ps[h]",
                  .buffers = {{"ps", kOfHeads}, {"seed", kSeed}},
                  .outputs = {.lse = true},
                  .gradients = {"q", "k", "v"}};
  Spec wide = {.name = "wide heads",
               .dtype = DType::bf16,
               .head_dim = 192,
               .v_head_dim = 128,
               .mask_mod = "q_idx + 160 >= kv_idx",
               .outputs = {.lse = true},
               .gradients = {"q", "k", "v"}};
  Spec packed = {.name = "packed sequences",
                 .dtype = DType::f16,
                 .head_dim = 64,
                 .layout = Layout::packed,
                 .score_mod = "score + slopes[h] * (kv_idx - q_idx) * 0.01",
                 .mask_mod = "q_idx >= kv_idx",
                 .buffers = {{"slopes", kOfHeads}},
                 .outputs = {.lse = true},
                 .gradients = {"q", "k", "v", "slopes"}};
  return {sums, bias, dropped, wide, packed};
}

}  // namespace tilewright::mutants
