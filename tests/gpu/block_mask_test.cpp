#include "runtime/block_mask.hpp"

#include "tests/gpu/driver_functions.hpp"
#include "tests/gpu/gpu_call.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

TEST_CASE("gpu: a block mask has the lists that the CPU makes") {
  if (gpu_is_missing()) return;
  for (const char* mask_mod : {"q_idx >= kv_idx", "q_idx >= kv_idx && q_idx - kv_idx < 200",
                               "false", "true", "h == 1 || (b == 0 && q_idx >= kv_idx)",
                               "(q_idx + kv_idx * 7) % 1000 == 0", "h_kv == 0 && kv_idx < 130"}) {
    const Spec spec{.dtype = f32, .head_dim = 64, .mask_mod = mask_mod};
    const Attention on_gpu(spec, {.device = gpu()});
    const Attention on_cpu(spec, {.device = Device::cpu()});
    for (const std::int64_t length : {1, 128, 129, 700, 2500}) {
      const Shape shape{
          .batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = length, .kv_len = length + 37};
      const BlockMask mask = on_gpu.block_mask(shape);
      const BlockMask expected = on_cpu.block_mask(shape);
      INFO(mask_mod << " at " << length);
      REQUIRE(mask.partial_tiles() == expected.partial_tiles());
      REQUIRE(mask.full_tiles() == expected.full_tiles());
      REQUIRE(mask.bytes() == expected.bytes());
      REQUIRE(mask.lists() == expected.lists());
    }
  }
}

TEST_CASE("gpu: a mask made on the CPU serves the GPU, and the other way round") {
  if (gpu_is_missing()) return;
  const Spec spec{.dtype = f32, .head_dim = 64, .mask_mod = "h == 1 || q_idx >= kv_idx"};
  const Attention on_gpu(spec, {.device = gpu()});
  const Attention on_cpu(spec, {.device = Device::cpu()});
  GpuCall call;
  const std::vector<float> expected = call.expected(spec);
  on_gpu.forward(call.on_gpu(), on_cpu.block_mask(call.shape()));
  REQUIRE(distance(call.out(), expected) < 2e-5f);

  const ForwardTensors host = call.on_host();
  on_cpu.forward(host, on_gpu.block_mask(call.shape()));
  const auto* out = static_cast<const float*>(host.out.data);
  REQUIRE(std::vector<float>(out, out + host.out.numel()) == expected);
}

TEST_CASE("gpu: a mask may be given up while a kernel still reads it") {
  if (gpu_is_missing()) return;
  const Spec spec{.dtype = f32, .head_dim = 64, .mask_mod = "q_idx >= kv_idx"};
  const Attention attention(spec, {.device = gpu()});
  GpuCall call(2000, 2000);
  for (int i = 0; i < 20; ++i) attention.forward(call.on_gpu(), attention.block_mask(call.shape()));
  REQUIRE(distance(call.out(), call.expected(spec)) < 2e-5f);
}
