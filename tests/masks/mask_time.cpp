// Times block masks on a GPU: by events with a capacity given, and with the size read back.
//
//     mask_time [--lengths 8192,131072,...] [--repeats N]
//
// Prints one line of JSON for each mask and length. bench/masks.py runs it next to PyTorch.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "base/dynamic_library.hpp"
#include "base/error.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/cuda/context.hpp"
#include "runtime/cuda/device_memory.hpp"

namespace {

using namespace tilewright;

// Functions of the driver that only timing needs.
struct Timing {
  using Event = struct CUevent_st*;
  using Pool = struct CUmemPoolHandle_st*;
  DynamicLibrary library = DynamicLibrary::open("libcuda.so.1");
  int (*event_create)(Event*, unsigned) = nullptr;
  int (*event_record)(Event, void*) = nullptr;
  int (*event_synchronize)(Event) = nullptr;
  int (*event_elapsed)(float*, Event, Event) = nullptr;
  int (*default_pool)(Pool*, int) = nullptr;
  int (*pool_get)(Pool, int, void*) = nullptr;
  int (*pool_set)(Pool, int, void*) = nullptr;
};

struct Mask {
  const char* name;
  const char* mask_mod;
  std::int64_t documents;  // 0: no buffer
  std::int64_t longest;
};

constexpr Mask kMasks[] = {
    {"causal", "q_idx >= kv_idx", 0, 1 << 20},
    {"window_4096", "q_idx >= kv_idx && q_idx - kv_idx < 4096", 0, 1 << 20},
    {"prefix_2048", "q_idx >= kv_idx || kv_idx < 2048", 0, 1 << 20},
    {"documents_64", "q_idx >= kv_idx && doc[q_idx] == doc[kv_idx]", 64, 1 << 20},
    {"opaque_mixed", "((q_idx*31 + kv_idx*17) >> 4) % 3 != 0", 0, 1 << 17},
    // No square leaves 5 modulo 8, which intervals cannot know.
    {"opaque_keeps_all", "const int x = (q_idx*31 + kv_idx*17) & 255; return x * x % 8 != 5;", 0,
     1 << 17},
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double wall_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void time_mask(const Timing& timing, const Device& device, const Mask& mask, std::int64_t length,
               int repeats) {
  Spec spec{.dtype = bf16, .head_dim = 64, .mask_mod = mask.mask_mod};
  std::vector<std::int32_t> documents;
  cuda::DeviceMemory memory;
  SnippetInputs inputs;
  if (mask.documents > 0) {
    spec.buffers["doc"] = {.dtype = i32, .shape = {NamedDim::kv_len}};
    for (std::int64_t i = 0; i < length; ++i) {
      documents.push_back(static_cast<std::int32_t>(i * mask.documents / length));
    }
    memory = cuda::DeviceMemory(device, documents.size() * 4);
    memory.copy_from(documents.data(), documents.size() * 4);
    inputs.buffers["doc"] = TensorView::contiguous(memory.data(), i32, {length});
  }
  const Attention attention(spec, {.device = device, .masks_only = true});
  const KernelBuild build = attention.builds().back();
  const Bindings bindings = attention.bind(inputs);
  const Shape shape{.q_len = length, .kv_len = length};

  Timing::Pool pool = nullptr;
  timing.default_pool(&pool, device.index());
  constexpr int kUsedHigh = 8, kUsedCurrent = 7;
  unsigned long long zero = 0, before = 0, high = 0;
  cuda::synchronize(device);
  timing.pool_get(pool, kUsedCurrent, &before);
  timing.pool_set(pool, kUsedHigh, &zero);
  const BlockMask first = attention.block_mask(shape, bindings);
  cuda::synchronize(device);
  timing.pool_get(pool, kUsedHigh, &high);

  std::vector<double> with_read_back;
  for (int i = 0; i < repeats; ++i) {
    const double start = wall_ms();
    const BlockMask again = attention.block_mask(shape, bindings);
    cuda::synchronize(device);
    with_read_back.push_back(wall_ms() - start);
  }

  BlockMask with_capacity = attention.block_mask(
      shape, bindings, {.capacity = first.partial_tiles() + first.full_tiles()});
  Timing::Event start = nullptr, end = nullptr;
  timing.event_create(&start, 0);
  timing.event_create(&end, 0);
  std::vector<double> by_events, on_host;
  for (int i = 0; i < repeats; ++i) {
    timing.event_record(start, nullptr);
    const double host_start = wall_ms();
    attention.rebuild(with_capacity, shape, bindings);
    on_host.push_back(wall_ms() - host_start);
    timing.event_record(end, nullptr);
    timing.event_synchronize(end);
    float ms = 0;
    timing.event_elapsed(&ms, start, end);
    by_events.push_back(static_cast<double>(ms));
  }
  if (with_capacity.lists() != first.lists()) throw Error(ErrorCode::internal, "lists differ");
  fmt::print(
      "{{\"mask\": \"{}\", \"length\": {}, \"ms\": {:.4f}, \"ms_with_read_back\": {:.4f}, "
      "\"host_ms\": {:.4f}, \"path\": \"{}\", \"evaluated\": {}, \"partial\": {}, \"full\": {}, "
      "\"list_bytes\": {}, \"peak_bytes\": {}, \"compile_ms\": {:.0f}}}\n",
      mask.name, length, median(by_events), median(with_read_back), median(on_host), first.path(),
      first.tiles_evaluated(), first.partial_tiles(), first.full_tiles(), first.bytes(),
      high - before, build.compile_ms);
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  std::vector<std::int64_t> lengths = {8192, 32768, 131072, 524288, 1 << 20};
  int repeats = 25;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--repeats") repeats = std::stoi(argv[i + 1]);
    if (option != "--lengths") continue;
    lengths.clear();
    std::istringstream words(argv[i + 1]);
    for (std::string word; std::getline(words, word, ',');) lengths.push_back(std::stoll(word));
  }
  Timing timing;
  const auto load = [&](auto& function, const char* name) {
    using Type = std::remove_pointer_t<std::remove_reference_t<decltype(function)>>;
    function = timing.library.function<Type>(name);
    if (!function) throw Error(ErrorCode::device, fmt::format("the driver has no {}", name));
  };
  const Device device = Device::parse("cuda");
  const cuda::ContextScope scope(cuda::Driver::get(), device.index());
  load(timing.event_create, "cuEventCreate");
  load(timing.event_record, "cuEventRecord");
  load(timing.event_synchronize, "cuEventSynchronize");
  load(timing.event_elapsed, "cuEventElapsedTime");
  load(timing.default_pool, "cuDeviceGetDefaultMemPool");
  load(timing.pool_get, "cuMemPoolGetAttribute");
  load(timing.pool_set, "cuMemPoolSetAttribute");
  for (const Mask& mask : kMasks) {
    for (const std::int64_t length : lengths) {
      if (length <= mask.longest) time_mask(timing, device, mask, length, repeats);
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
}
