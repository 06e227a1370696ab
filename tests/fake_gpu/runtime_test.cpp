// The CUDA runtime against a driver that is not one; see fake_driver.cpp. Needs NVRTC.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/call/staged_call.hpp"
#include "runtime/cuda/context.hpp"
#include "runtime/cuda/device_memory.hpp"
#include "runtime/cuda/memory_pool.hpp"
#include "runtime/cuda/nvrtc.hpp"
#include "runtime/cuda/tile_lists.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/nvrtc.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;
using test::nvrtc_is_missing;

namespace {

const Spec kCausal{.dtype = f16, .head_dim = 64, .mask_mod = "q_idx >= kv_idx"};
const Shape kShape{.batch = 1, .num_q_heads = 2, .num_kv_heads = 2, .q_len = 300, .kv_len = 200};

// A variable of the fake driver.
template <typename T>
T& fake(const char* name) {
  static const DynamicLibrary library = DynamicLibrary::open("libcuda.so.1");
  return *reinterpret_cast<T*>(library.function<void()>(name));
}

Attention causal() {
  return Attention(kCausal, {.device = Device::parse("cuda")});
}

struct Tensors {
  cuda::DeviceMemory inputs{Device::parse("cuda"), 2 * 300 * 64 * 2};
  cuda::DeviceMemory out{Device::parse("cuda"), 2 * 300 * 64 * 2};
  ForwardTensors views() const {
    const auto view = [](const cuda::DeviceMemory& memory, std::int64_t rows) {
      return TensorView::contiguous(memory.data(), f16, {1, 2, rows, 64});
    };
    return {.q = view(inputs, 300),
            .k = view(inputs, 200),
            .v = view(inputs, 200),
            .out = view(out, 300)};
  }
};

cuda::Context current_context() {
  cuda::Context context = nullptr;
  cuda::Driver::get().functions().context_current(&context);
  return context;
}

// The kernels of what `work` launches, in order, without the digits that their names end with.
template <typename Work>
std::vector<std::string> launched_by(const Work& work) {
  const long begin = fake<long>("fake_launches");
  work();
  std::vector<std::string> names;
  for (long i = begin; i < fake<long>("fake_launches"); ++i) {
    const std::string name = fake<const char* [256]>("fake_launched")[i % 256];
    names.push_back(name.substr(0, name.rfind('_')));
  }
  return names;
}

std::vector<std::string> mask_launches(const Spec& spec) {
  const Attention attention(spec, {.device = Device::parse("cuda"), .masks_only = true});
  REQUIRE(attention.builds().size() == 2);
  REQUIRE(attention.builds().front().kernel == "mask_lists");
  const cuda::DeviceMemory memory(Device::parse("cuda"), 4 * 200);
  SnippetInputs inputs;
  for (const auto& [name, buffer] : spec.buffers) {
    inputs.buffers[name] = TensorView::contiguous(memory.data(), buffer.dtype, {200});
  }
  return launched_by([&] { attention.block_mask(kShape, attention.bind(inputs)); });
}

}  // namespace

TEST_CASE("fake GPU: everything is given back, and no context is left current") {
  if (nvrtc_is_missing()) return;
  {
    const Attention attention = causal();
    REQUIRE(attention.target().name() == "sm_90a");
    const Tensors tensors;
    const BlockMask mask = attention.block_mask(kShape);
    REQUIRE(mask.lists().row_offsets.size() == 4);
    attention.forward(tensors.views(), mask);
    REQUIRE(current_context() == nullptr);
    REQUIRE(fake<std::atomic<long>>("fake_held") > 0);
  }
  REQUIRE(fake<std::atomic<long>>("fake_held") == 0);
}

TEST_CASE("fake GPU: forward is one launch, takes no memory and makes no module") {
  if (nvrtc_is_missing()) return;
  const Attention attention = causal();
  const Tensors tensors;
  const BlockMask mask = attention.block_mask(kShape);
  const ForwardTensors views = tensors.views();
  const Tensors others;
  attention.forward(others.views(), mask);
  const long held = fake<std::atomic<long>>("fake_held");
  const long launches = fake<long>("fake_launches");
  const long maps = fake<long>("fake_tensor_maps");
  const std::int64_t before = allocation_count();
  attention.forward(views, mask);
  const std::int64_t after = allocation_count();
  REQUIRE(after == before);
  REQUIRE(fake<std::atomic<long>>("fake_held") == held);
  REQUIRE(fake<long>("fake_launches") == launches + 1);
  REQUIRE(fake<long>("fake_tensor_maps") == maps + 4);  // q, k, v, out
  attention.forward(views, mask);
  REQUIRE(fake<long>("fake_tensor_maps") == maps + 4);  // the same tensors: no new ones
  attention.forward(others.views(), mask);
  REQUIRE(fake<long>("fake_tensor_maps") == maps + 8);
  REQUIRE(fake<unsigned>("fake_grid") == 2 * 2);  // q tiles of 192 x heads
  // Two tiles of Q and one of out, two of K and two of V, of rows of 128 bytes; barriers.
  REQUIRE(fake<unsigned>("fake_shared_bytes") == (2 + 1) * 192 * 128 + (2 + 2) * 128 * 128 + 1024);
}

TEST_CASE("fake GPU: what is written to a staged input or around it is found") {
  const Tensor q = Tensor::zeros(f16, {1, 2, 5, 64});
  Tensor out = Tensor::zeros(f16, {1, 2, 5, 64});
  const SnippetInputs inputs{.buffers = {{"bias", q.view()}}, .scalars = {}};
  const ForwardTensors host{.q = q.view(), .k = q.view(), .v = q.view(), .out = out.view()};
  const StagedCall staged(Device::parse("cuda"), host, inputs);
  const auto flip = [](const TensorView& view, std::ptrdiff_t byte) {
    static_cast<unsigned char*>(view.data)[byte] ^= 1;
  };
  constexpr std::ptrdiff_t kBytes = 2 * 5 * 64 * 2;

  flip(staged.tensors().out, 0);
  CHECK_FALSE(staged.changed_input());
  const std::pair<TensorView, std::string> staged_inputs[] = {
      {staged.tensors().q, "q"},
      {staged.tensors().k, "k"},
      {staged.tensors().v, "v"},
      {staged.inputs().buffers.at("bias"), "buffer bias"}};
  for (const auto& [view, name] : staged_inputs) {
    for (const std::ptrdiff_t byte : {std::ptrdiff_t{-256}, kBytes / 2, kBytes + 255}) {
      flip(view, byte);
      CHECK(staged.changed_input() ==
            name + " was written to on the GPU, at byte " + std::to_string(byte));
      flip(view, byte);
    }
  }
  CHECK_FALSE(staged.changed_input());
}

TEST_CASE("fake GPU: a cubin that the driver refuses is reported with the GPU and the target") {
  if (nvrtc_is_missing()) return;
  fake<int>("fake_refuse_modules") = 1;
  std::string report;
  try {
    causal();
  } catch (const Error& error) {
    report = error.what();
  }
  fake<int>("fake_refuse_modules") = 0;
  REQUIRE_THAT(report, ContainsSubstring("error[device]: GPU 0 (Fake, sm_90)") &&
                           ContainsSubstring("sm_90a") && ContainsSubstring("hint: "));
  REQUIRE(fake<std::atomic<long>>("fake_held") == 0);
}

TEST_CASE(
    "fake GPU: one of an unknown generation is refused, whether or not kernels are compiled") {
  if (nvrtc_is_missing()) return;
  fake<int>("fake_generation") = 99;
  const bool compiles = GENERATE(true, false);
  std::string report;
  try {
    const Attention attention(kCausal,
                              {.device = Device::parse("cuda"), .kernels = {.jit = compiles}});
  } catch (const Error& error) {
    report = error.what();
  }
  fake<int>("fake_generation") = 9;
  REQUIRE_THAT(report, ContainsSubstring("error[device]: GPU 0 (Fake, sm_990)") &&
                           ContainsSubstring("has no target for") && ContainsSubstring("hint: "));
}

TEST_CASE("fake GPU: want of memory while a block mask is built gives back what was taken") {
  if (nvrtc_is_missing()) return;
  const Attention attention = causal();
  const long held = fake<std::atomic<long>>("fake_held");
  fake<int>("fake_refuse_memory") = 1;
  ErrorCode code = ErrorCode::internal;
  try {
    attention.block_mask(kShape);
  } catch (const Error& error) {
    code = error.code();
  }
  fake<int>("fake_refuse_memory") = 0;
  REQUIRE(code == ErrorCode::memory);
  REQUIRE(fake<std::atomic<long>>("fake_held") == held);
  REQUIRE(current_context() == nullptr);
}

TEST_CASE("fake GPU: a block mask does not wait for the driver's memory pool") {
  if (nvrtc_is_missing()) return;
  const long held = fake<std::atomic<long>>("fake_held");
  std::atomic<int>& hold_pool = fake<std::atomic<int>>("fake_hold_pool");
  const auto build_while_pool_is_made = [&] {
    cuda::forget_memory_pools();
    hold_pool = 1;
    const Attention attention = causal();
    REQUIRE(cuda::is_memory_pool_being_made());
    const BlockMask mask = attention.block_mask(kShape);
    REQUIRE(cuda::is_memory_pool_being_made());
    hold_pool = 0;
    while (cuda::is_memory_pool_being_made()) std::this_thread::yield();
    attention.block_mask(kShape);
  };
  SECTION("without a current context") {
    build_while_pool_is_made();
  }
  SECTION("in the primary one, as CUDA's runtime leaves it") {
    const cuda::ContextScope scope(cuda::Driver::get(), 0);
    build_while_pool_is_made();
  }
  REQUIRE(fake<std::atomic<long>>("fake_held") == held);
}

TEST_CASE("fake GPU: the driver's memory pool is made once in a process") {
  if (nvrtc_is_missing()) return;
  cuda::forget_memory_pools();
  std::atomic<int>& hold_pool = fake<std::atomic<int>>("fake_hold_pool");
  hold_pool = 1;
  const Attention first = causal();
  REQUIRE(cuda::is_memory_pool_being_made());
  hold_pool = 0;
  while (cuda::is_memory_pool_being_made()) std::this_thread::yield();
  hold_pool = 1;
  const Attention second = causal();
  const bool again = cuda::is_memory_pool_being_made();
  hold_pool = 0;
  REQUIRE_FALSE(again);
}

TEST_CASE("fake GPU: nothing in the background uses a context that is not the primary one") {
  if (nvrtc_is_missing()) return;
  const cuda::DriverFunctions& f = cuda::Driver::get().functions();
  f.context_push(reinterpret_cast<cuda::Context>(&fake<char[2]>("fake_contexts")[1]));
  cuda::forget_memory_pools();
  fake<std::atomic<int>>("fake_hold_pool") = 1;
  const bool makes_pool = [] {
    const Attention attention = causal();
    const bool being_made = cuda::is_memory_pool_being_made();
    fake<std::atomic<int>>("fake_hold_pool") = 0;
    return being_made;
  }();
  cuda::Context popped = nullptr;
  f.context_pop(&popped);
  REQUIRE_FALSE(makes_pool);
}

TEST_CASE("fake GPU: a mask with a capacity serves another context, and follows what is rebuilt") {
  if (nvrtc_is_missing()) return;
  const Attention attention = causal();
  const Tensors tensors;
  const BlockMask mask = attention.block_mask(kShape, {}, {.capacity = 6});
  const cuda::DriverFunctions& f = cuda::Driver::get().functions();
  f.context_push(reinterpret_cast<cuda::Context>(&fake<char[2]>("fake_contexts")[1]));
  const auto copied = [&] {
    attention.forward(tensors.views(), mask);
    const cuda::ContextScope scope(cuda::Driver::get(), 0);
    const auto none = [](const HostTileLists&) { return std::shared_ptr<const DeviceTileLists>(); };
    return MaskPlacement::on_device(mask, scope.id(), none)->to_host();
  };
  const TileLists none = copied();
  // As a rebuild in a captured graph would, with one partial tile in the last row.
  const auto& lists = static_cast<const cuda::TileListMemory&>(*MaskPlacement::made_in(mask, 1));
  for (long long* end = lists.by_rows().row_offsets() + 3; end != lists.by_rows().row_offsets() + 8;
       ++end) {
    *end = 1;
  }
  const TileLists one = copied();
  cuda::Context popped = nullptr;
  f.context_pop(&popped);
  REQUIRE(none.indices.empty());
  REQUIRE(one.row_offsets == std::vector<std::int64_t>{0, 0, 0, 1});
  REQUIRE(one.indices.size() == 1);
}

TEST_CASE("fake GPU: a block mask is counted, summed and listed, behind a launch for each table") {
  if (nvrtc_is_missing()) return;
  REQUIRE(mask_launches(kCausal) ==
          std::vector<std::string>{"tw_mask_proved", "tw_mask_lists", "tw_mask_proved"});

  Spec spec = kCausal;
  spec.mask_mod = "a[q_idx] == a[kv_idx] && b_[q_idx] <= b_[kv_idx] && w[kv_idx] > 0";
  spec.buffers["a"] = spec.buffers["b_"] = {.dtype = i32, .shape = {NamedDim::kv_len}};
  spec.buffers["w"] = {.dtype = f32, .shape = {NamedDim::kv_len}};
  REQUIRE(mask_launches(spec) == std::vector<std::string>{"tw_mask_lists_extrema",
                                                          "tw_mask_lists_extrema", "tw_mask_proved",
                                                          "tw_mask_lists_scan", "tw_mask_proved"});
}

TEST_CASE("fake GPU: where intervals do not understand a mask_mod, no table is made") {
  if (nvrtc_is_missing()) return;
  Spec spec = kCausal;
  spec.mask_mod = "unsigned first = a[q_idx]; return first <= a[kv_idx];";
  spec.buffers["a"] = {.dtype = i32, .shape = {NamedDim::kv_len}};
  REQUIRE(mask_launches(spec) ==
          std::vector<std::string>{"tw_mask_exact", "tw_mask_lists_scan", "tw_mask_exact"});
}
