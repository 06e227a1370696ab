// Reads of a buffer that ends, and begins, where memory does: on the emulated GPU a kernel's memory
// is the host's, so a read outside ends the process.

#include <cstdint>

#include "runtime/api/attention.hpp"
#include "runtime/api/tensor.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/fenced_memory.hpp"
#include "verify/check.hpp"
#include "verify/random_inputs.hpp"

using namespace tilewright;

namespace {

constexpr std::int64_t kTableSize = 1024;  // floats: whole pages

void run(const char* score_mod, std::int64_t q_len, std::int64_t kv_len, bool masked) {
  Spec spec{.dtype = bf16, .head_dim = 64, .score_mod = score_mod};
  if (masked) spec.mask_mod = "q_idx / 100 != 1 && q_idx - kv_idx < 90";
  spec.buffers["bias"] = {.dtype = f32, .shape = {kTableSize}};
  spec.tactic = TacticSpec{.name = "hopper", .parameters = {}};
  const Attention attention(spec, {.device = Device::parse("cuda")});
  const test::FencedMemory bias(kTableSize * sizeof(float));
  SnippetInputs inputs;
  inputs.buffers["bias"] = TensorView::contiguous(bias.data(), f32, {kTableSize});
  const Bindings bindings = attention.bind(inputs);
  const Shape shape{
      .batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = q_len, .kv_len = kv_len};
  const Tensor q = Tensor::zeros(bf16, {1, 1, q_len, 64}),
               k = Tensor::zeros(bf16, {1, 1, kv_len, 64});
  Tensor out = Tensor::zeros(bf16, {1, 1, q_len, 64});
  const ForwardTensors tensors{
      .q = q.view(), .k = k.view(), .v = k.view(), .out = out.view(), .lse = {}};
  if (masked) {
    attention.forward(tensors, attention.block_mask(shape, bindings), bindings);
  } else {
    attention.forward(tensors, bindings);
  }
}

}  // namespace

// Inside for all that exists; rows and columns of ragged tiles, and the tile that an empty row
// visits, are not: kv_idx - q_idx + 723 is 1023 at the last column of row 0, q_idx - kv_idx + 299
// is 0 there.
TEST_CASE("emulated GPU: what does not exist reads nothing outside a table") {
  for (const bool masked : {false, true}) {
    run("score + bias[kv_idx - q_idx + 723]", 300, 301, masked);
    run("score + bias[q_idx - kv_idx + 300]", 300, 301, masked);
    run("score + bias[q_idx - kv_idx + 724]", 300, 301, masked);
    run("score + bias[kv_idx - q_idx + 299]", 300, 301, masked);
    run("score + bias[kv_idx + 723]", 300, 301, masked);
    run("score + bias[q_idx + 724]", 300, 301, masked);
  }
}

// All tiles are inside; tests/battery/variants/inner_reads.json has other indices.
TEST_CASE("emulated GPU: reads of differences that are inside have their values") {
  Spec spec{.dtype = bf16, .head_dim = 64, .score_mod = "score + bias[kv_idx - q_idx]"};
  spec.buffers["bias"] = {.dtype = f32, .shape = {kTableSize}};
  spec.tactic = TacticSpec{.name = "hopper", .parameters = {}};
  const Shape shape{.batch = 1,
                    .num_q_heads = 1,
                    .num_kv_heads = 1,
                    .q_len = 200,
                    .kv_len = 150,
                    .kv_offset = 500};
  const verify::Inputs inputs = verify::random_inputs(spec, shape, 1);
  const verify::Report report =
      verify::check(spec, inputs.problem(), {.attention = {.device = Device::parse("cuda")}});
  CAPTURE(report.reasons());
  CHECK(report.ok);
}

TEST_CASE("emulated GPU: what exists and is outside is clamped") {
  run("score + bias[kv_idx - q_idx]", 300, 301, false);
  run("score + bias[kv_idx - q_idx + 1000]", 300, 301, true);
}
