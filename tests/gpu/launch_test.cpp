// Host time and host memory of a call.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "runtime/cuda/context.hpp"
#include "runtime/cuda/empty_kernel.hpp"
#include "tests/gpu/driver_functions.hpp"
#include "tests/gpu/gpu_call.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

constexpr int kBatches = 200;
constexpr int kCallsOfBatch = 100;  // fewer than the driver queues before it makes the caller wait

// Median microseconds of one call, over batches that begin with an idle GPU.
template <typename Body>
double host_microseconds(const Body& body) {
  const cuda::Driver& driver = cuda::Driver::get();
  std::vector<double> times;
  for (int batch = 0; batch < kBatches; ++batch) {
    require_success(driver.functions().context_synchronize(), "waiting");
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCallsOfBatch; ++i) body();
    const std::chrono::duration<double, std::micro> elapsed =
        std::chrono::steady_clock::now() - start;
    times.push_back(elapsed.count() / kCallsOfBatch);
  }
  require_success(driver.functions().context_synchronize(), "waiting");
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

TEST_CASE("gpu: forward costs the host the driver's launch and at most 1 us more") {
  if (gpu_is_missing()) return;
  const cuda::ContextScope scope(cuda::Driver::get(), 0);
  const Spec spec{.dtype = f32, .head_dim = 64, .mask_mod = "q_idx >= kv_idx"};
  const Attention attention(spec, {.device = gpu()});
  GpuCall call(1, 1);
  const BlockMask mask = attention.block_mask(call.shape());
  const ForwardTensors tensors = call.on_gpu();
  cuda::EmptyKernel empty(cuda::Driver::get(),
                          cuda::EmptyKernel::compile(attention.target().name()));
  const double launch_us = host_microseconds([&] { empty.launch(); });
  const double forward_us = host_microseconds([&] { attention.forward(tensors, mask); });
  const double again_us = host_microseconds([&] { empty.launch(); });
  std::printf("host time of a call: forward %.2f us, the driver's launch %.2f and %.2f us\n",
              forward_us, launch_us, again_us);
  REQUIRE(forward_us <= std::max(launch_us, again_us) + 1.0);
}

TEST_CASE("gpu: forward takes no memory of the host") {
  if (gpu_is_missing()) return;
  const cuda::ContextScope scope(cuda::Driver::get(), 0);
  const Spec spec{.dtype = f32, .head_dim = 64, .mask_mod = "q_idx >= kv_idx"};
  const Attention attention(spec, {.device = gpu()});
  GpuCall call(64, 64);
  const BlockMask mask = attention.block_mask(call.shape());
  const ForwardTensors tensors = call.on_gpu();
  attention.forward(tensors, mask);
  const std::int64_t before = allocation_count();
  for (int i = 0; i < 10; ++i) attention.forward(tensors, mask);
  const std::int64_t after = allocation_count();  // REQUIRE allocates, too
  REQUIRE(after == before);
  cuda::synchronize(gpu());
}
