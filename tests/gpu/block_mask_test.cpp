#include "runtime/api/block_mask.hpp"

#include <cstdint>
#include <vector>

#include "runtime/cuda/device_memory.hpp"
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

namespace {

// 64 documents of unlike lengths over `length` tokens, beginning with number `first`.
std::vector<std::int32_t> documents(std::int64_t length, std::int32_t first) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < length; ++i) {
    ids.push_back(first + static_cast<std::int32_t>(i * i / (length * length / 64 + 1)));
  }
  return ids;
}

const Spec kDocuments{.dtype = f32,
                      .head_dim = 64,
                      .mask_mod = "q_idx >= kv_idx && doc[q_idx] == doc[kv_idx]",
                      .buffers = {{"doc", {.dtype = i32, .shape = {NamedDim::kv_len}}}}};

}  // namespace

TEST_CASE("gpu: a mask with a capacity has the same lists, and too small a one says so") {
  if (gpu_is_missing()) return;
  const Attention attention({.dtype = f32, .head_dim = 64, .mask_mod = "q_idx >= kv_idx"},
                            {.device = gpu()});
  const Shape shape{.q_len = 3000, .kv_len = 3100};
  const BlockMask expected = attention.block_mask(shape);
  const std::int64_t tiles = expected.partial_tiles() + expected.full_tiles();
  const BlockMask enough = attention.block_mask(shape, {}, {.capacity = tiles, .transposed = true});
  REQUIRE(enough.lists() == expected.lists());
  REQUIRE(enough.transposed() == expected.transposed());
  REQUIRE(enough.tiles_evaluated() == expected.tiles_evaluated());
  const BlockMask small = attention.block_mask(shape, {}, {.capacity = tiles - 1});
  REQUIRE_THROWS_WITH(small.lists(), Catch::Matchers::ContainsSubstring("its capacity is"));
}

TEST_CASE("gpu: transposed lists are those that the host makes") {
  if (gpu_is_missing()) return;
  const Attention attention(
      {.dtype = f32, .head_dim = 64, .mask_mod = "h == 1 || (q_idx * 31 + kv_idx * 17) % 7 < 6"},
      {.device = gpu()});
  const Shape shape{.num_q_heads = 2, .num_kv_heads = 2, .q_len = 1900, .kv_len = 700};
  const BlockMask mask = attention.block_mask(shape, {}, {.transposed = true});
  REQUIRE(mask.transposed() == transpose(mask.lists(), mask.q_blocks(), mask.kv_blocks()));
}

TEST_CASE("gpu: a captured rebuild follows the buffers' contents") {
  if (gpu_is_missing()) return;
  const cuda::ContextScope scope(cuda::Driver::get(), 0);
  const Attention attention(kDocuments, {.device = gpu()});
  constexpr std::int64_t kLength = 5000;
  const Shape shape{.q_len = kLength, .kv_len = kLength};
  cuda::DeviceMemory memory(gpu(), kLength * 4);
  const Bindings bindings =
      attention.bind({.buffers = {{"doc", TensorView::contiguous(memory.data(), i32, {kLength})}}});
  const auto set = [&](const std::vector<std::int32_t>& ids) {
    memory.copy_from(ids.data(), ids.size() * 4);
  };
  set(std::vector<std::int32_t>(kLength, 0));
  BlockMask mask = attention.block_mask(shape, bindings, {.capacity = 40 * 41 / 2});
  REQUIRE(mask.full_tiles() == 40 * 39 / 2);

  const TestStream stream;
  const TestGraph graph(stream, TestGraph::Capture::relaxed,
                        [&] { attention.rebuild(mask, shape, bindings, stream.get()); });
  for (const std::int32_t first : {3, 7}) {
    std::vector<std::int32_t> ids = documents(kLength, first);
    if (first == 7) ids.back() = 0;
    set(ids);
    graph.launch();
    stream.synchronize();
    const Attention on_cpu(kDocuments, {.device = Device::cpu(), .masks_only = true});
    const Bindings host =
        on_cpu.bind({.buffers = {{"doc", TensorView::contiguous(ids.data(), i32, {kLength})}}});
    REQUIRE(mask.lists() == on_cpu.block_mask(shape, host).lists());
  }
}

TEST_CASE("gpu: a mask made without a capacity is not rebuilt") {
  if (gpu_is_missing()) return;
  const Attention attention({.dtype = f32, .head_dim = 64, .mask_mod = "q_idx >= kv_idx"},
                            {.device = gpu()});
  const Shape shape{.q_len = 300, .kv_len = 300};
  BlockMask mask = attention.block_mask(shape);
  REQUIRE_THROWS_WITH(attention.rebuild(mask, shape),
                      Catch::Matchers::ContainsSubstring("without a capacity"));
}
