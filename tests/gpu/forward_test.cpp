#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "base/error.hpp"
#include "tests/gpu/driver_functions.hpp"
#include "tests/gpu/gpu_call.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

constexpr float kTolerance = 2e-5f;

const Spec kPlain{.dtype = f32, .head_dim = 64};
const Spec kCausal{.dtype = f32, .head_dim = 64, .mask_mod = "q_idx >= kv_idx"};

// Makes a context of the test's own current, and none afterwards.
class OwnContext {
 public:
  OwnContext() {
    require_success(TestDriver::get().context_create(&context_, 0, 0), "making a context");
  }
  ~OwnContext() { TestDriver::get().context_destroy(context_); }
  OwnContext(const OwnContext&) = delete;
  OwnContext& operator=(const OwnContext&) = delete;
  cuda::Context get() const { return context_; }

 private:
  cuda::Context context_ = nullptr;
};

cuda::Context current_context() {
  cuda::Context context = nullptr;
  require_success(cuda::Driver::get().functions().context_current(&context), "asking");
  return context;
}

}  // namespace

TEST_CASE("gpu: forward gives what the CPU gives, with and without a mask") {
  if (gpu_is_missing()) return;
  GpuCall call;
  const Attention plain(kPlain, {.device = gpu()});
  plain.forward(call.on_gpu());
  REQUIRE(distance(call.out(), call.expected(kPlain)) < kTolerance);

  call.poison_out();
  const Attention causal(kCausal, {.device = gpu()});
  const BlockMask mask = causal.block_mask(call.shape());
  causal.forward(call.on_gpu(), mask);
  REQUIRE(distance(call.out(), call.expected(kCausal)) < kTolerance);
}

TEST_CASE("gpu: a thread without a context has none after a call, either") {
  if (gpu_is_missing()) return;
  std::thread([] {
    GpuCall call;
    const Attention attention(kPlain, {.device = gpu()});
    attention.forward(call.on_gpu());
    CHECK(current_context() == nullptr);
    CHECK(distance(call.out(), call.expected(kPlain)) < kTolerance);
  }).join();
}

TEST_CASE("gpu: a call works in the caller's own context and leaves it current") {
  if (gpu_is_missing()) return;
  auto attention = std::make_unique<Attention>(kCausal, AttentionOptions{.device = gpu()});
  const OwnContext context;  // another one than the attention was made in
  {
    GpuCall call;
    const BlockMask mask = attention->block_mask(call.shape());
    attention->forward(call.on_gpu(), mask);
    REQUIRE(current_context() == context.get());
    REQUIRE(distance(call.out(), call.expected(kCausal)) < kTolerance);
  }
  attention.reset();  // while the context is there
  REQUIRE(current_context() == context.get());
}

TEST_CASE("gpu: two threads with a stream each share one attention") {
  if (gpu_is_missing()) return;
  const Attention attention(kCausal, {.device = gpu()});
  const auto work = [&](unsigned seed, float& worst) {
    GpuCall call(257, 311, seed);
    const std::vector<float> expected = call.expected(kCausal);
    const cuda::ContextScope scope(cuda::Driver::get(), 0);
    const TestStream stream;
    const BlockMask mask = attention.block_mask(call.shape(), {}, stream.get());
    for (int i = 0; i < 50; ++i) {
      call.poison_out();
      attention.forward(call.on_gpu(), mask, {}, {.stream = stream.get()});
      stream.synchronize();
      worst = std::max(worst, distance(call.out(), expected));
    }
  };
  float first = 0;
  float second = 0;
  std::thread other([&] { work(7, second); });
  work(3, first);
  other.join();
  REQUIRE(first < kTolerance);
  REQUIRE(second < kTolerance);
}

TEST_CASE("gpu: a graph that captured forward replays it with changed contents") {
  if (gpu_is_missing()) return;
  const cuda::ContextScope scope(cuda::Driver::get(), 0);
  GpuCall call;
  const Attention attention(kCausal, {.device = gpu()});
  const TestStream stream;
  const BlockMask mask = attention.block_mask(call.shape(), {}, stream.get());
  stream.synchronize();

  const TestGraph graph(stream, TestGraph::Capture::of_thread, [&] {
    attention.forward(call.on_gpu(), mask, {}, {.stream = stream.get()});
  });
  for (const unsigned seed : {11u, 22u, 33u}) {
    call.change_contents(seed);
    call.poison_out();
    graph.launch();
    stream.synchronize();
    REQUIRE(distance(call.out(), call.expected(kCausal)) < kTolerance);
  }
}

// The first Attention with a mask_mod in a process makes the driver's memory pool in the
// background: so this shows most in a process of its own (scripts/gpu_check.sh).
TEST_CASE("gpu: a capture may begin while the memory pool is made") {
  if (gpu_is_missing()) return;
  const cuda::ContextScope scope(cuda::Driver::get(), 0);
  GpuCall call;
  const Attention attention(kPlain, {.device = gpu()});
  const Attention first_with_mask_mod(kCausal, {.device = gpu()});
  const BlockMask early = first_with_mask_mod.block_mask(call.shape());  // does not wait for it
  const TestStream stream;

  // The pool takes 8 ms.
  const TestGraph graph(stream, TestGraph::Capture::global, [&] {
    for (int i = 0; i < 10; ++i) {
      attention.forward(call.on_gpu(), {}, {.stream = stream.get()});
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  call.poison_out();
  graph.launch();
  stream.synchronize();
  REQUIRE(distance(call.out(), call.expected(kPlain)) < kTolerance);
  const BlockMask late = first_with_mask_mod.block_mask(call.shape());
  for (const BlockMask* mask : {&early, &late}) {
    call.poison_out();
    first_with_mask_mod.forward(call.on_gpu(), *mask);
    REQUIRE(distance(call.out(), call.expected(kCausal)) < kTolerance);
  }
}

TEST_CASE("gpu: 1,000 repeats give the same bits") {
  if (gpu_is_missing()) return;
  GpuCall call;
  const Attention attention(kCausal, {.device = gpu()});
  const BlockMask mask = attention.block_mask(call.shape());
  attention.forward(call.on_gpu(), mask);
  const std::vector<float> first = call.out();
  REQUIRE(distance(first, call.expected(kCausal)) < kTolerance);
  for (int i = 0; i < 1000; ++i) {
    call.poison_out();
    attention.forward(call.on_gpu(), mask);
    if (call.out() != first) FAIL("repeat " << i << " differs");
  }
}

TEST_CASE("gpu: tensors off 16 bytes take the other kernel, with the same result") {
  if (gpu_is_missing()) return;
  GpuCall call;
  const Attention attention(kPlain, {.device = gpu()});
  const ForwardTensors host = call.on_host();
  std::vector<float> shifted(static_cast<std::size_t>(host.k.numel()) + 1);
  std::copy_n(static_cast<const float*>(host.k.data), host.k.numel(), shifted.begin() + 1);
  cuda::DeviceMemory memory(gpu(), shifted.size() * sizeof(float));
  memory.copy_from(shifted.data(), memory.bytes());
  ForwardTensors tensors = call.on_gpu();
  tensors.k.data = static_cast<float*>(memory.data()) + 1;
  attention.forward(tensors);
  REQUIRE(distance(call.out(), call.expected(kPlain)) < kTolerance);
}
