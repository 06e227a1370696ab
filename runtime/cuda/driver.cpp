#include "runtime/cuda/driver.hpp"

#include <optional>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace tilewright::cuda {
namespace {

constexpr int kOutOfMemory = 2;          // CUDA_ERROR_OUT_OF_MEMORY
constexpr int kNotInitialized = 3;       // CUDA_ERROR_NOT_INITIALIZED
constexpr int kDeinitialized = 4;        // CUDA_ERROR_DEINITIALIZED
constexpr int kOldestArchitecture = 80;  // cp.async and bf16 mma

// A driver's outcome is kept, good or bad: initialising twice would not help.
struct Search {
  const Driver* driver = nullptr;
  std::string reason;
};

}  // namespace

const Driver* Driver::find(std::string* reason) {
  static const Search& search = *new Search([] {
    Search result;
    try {
      result.driver = new Driver();  // lives as long as the process
    } catch (const Error& error) {
      result.reason = error.message();
    }
    return result;
  }());
  if (reason) *reason = search.reason;
  return search.driver;
}

const Driver& Driver::get() {
  std::string reason;
  if (const Driver* driver = find(&reason)) return *driver;
  throw Error(
      ErrorCode::device, reason,
      "use Device::cpu(), or install an NVIDIA driver and see that this process may use it");
}

Driver::Driver() : library_(DynamicLibrary::open("libcuda.so.1")) {
  if (!library_) {
    throw Error(ErrorCode::device, fmt::format("no NVIDIA driver: {}", library_.reason()));
  }
  const auto load = [&](auto& function, const char* name) {
    using Type = std::remove_pointer_t<std::remove_reference_t<decltype(function)>>;
    function = library_.function<Type>(name);
    if (!function) {
      throw Error(ErrorCode::device,
                  fmt::format("the NVIDIA driver has no function {}: it is too old", name));
    }
  };
  const auto load_if_there = [&](auto& function, const char* name) {
    using Type = std::remove_pointer_t<std::remove_reference_t<decltype(function)>>;
    function = library_.function<Type>(name);
  };
  DriverFunctions& f = functions_;
  load(f.init, "cuInit");
  load(f.driver_version, "cuDriverGetVersion");
  load(f.error_name, "cuGetErrorName");
  load(f.error_string, "cuGetErrorString");
  load(f.device_count, "cuDeviceGetCount");
  load(f.device_get, "cuDeviceGet");
  load(f.device_name, "cuDeviceGetName");
  load(f.device_attribute, "cuDeviceGetAttribute");
  load(f.primary_context_retain, "cuDevicePrimaryCtxRetain");
  load(f.primary_context_state, "cuDevicePrimaryCtxGetState");
  load(f.context_current, "cuCtxGetCurrent");
  load(f.context_push, "cuCtxPushCurrent_v2");
  load(f.context_pop, "cuCtxPopCurrent_v2");
  load(f.context_device, "cuCtxGetDevice");
  load(f.context_synchronize, "cuCtxSynchronize");
  load_if_there(f.context_id, "cuCtxGetId");
  load(f.module_load, "cuModuleLoadData");
  load(f.module_unload, "cuModuleUnload");
  load(f.module_function, "cuModuleGetFunction");
  load_if_there(f.function_load, "cuFuncLoad");
  load(f.function_set_attribute, "cuFuncSetAttribute");
  load(f.launch, "cuLaunchKernel");
  load_if_there(f.tensor_map_encode, "cuTensorMapEncodeTiled");
  load(f.allocate, "cuMemAlloc_v2");
  load(f.free, "cuMemFree_v2");
  load_if_there(f.allocate_async, "cuMemAllocAsync");
  load_if_there(f.free_async, "cuMemFreeAsync");
  load(f.copy_to_device, "cuMemcpyHtoDAsync_v2");
  load(f.copy_to_host, "cuMemcpyDtoHAsync_v2");
  load(f.fill_bytes, "cuMemsetD8Async");
  load(f.stream_synchronize, "cuStreamSynchronize");
  load_if_there(f.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
  load_if_there(f.stream_create, "cuStreamCreateWithPriority");
  load_if_there(f.stream_destroy, "cuStreamDestroy_v2");
  load_if_there(f.stream_priorities, "cuCtxGetStreamPriorityRange");
  load_if_there(f.stream_wait, "cuStreamWaitEvent");
  load_if_there(f.stream_query, "cuStreamQuery");
  load_if_there(f.copy_pitched, "cuMemcpy2DAsync_v2");
  load(f.event_create, "cuEventCreate");
  load(f.event_destroy, "cuEventDestroy_v2");
  load(f.event_record, "cuEventRecord");
  load(f.event_synchronize, "cuEventSynchronize");
  load(f.event_elapsed, "cuEventElapsedTime");

  check(f.driver_version(&version_), "asking for its version");
  check(f.init(0), "starting");
  check(f.device_count(&device_count_), "counting GPUs");
}

std::string Driver::describe(int result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  functions_.error_name(result, &name);
  functions_.error_string(result, &text);
  return fmt::format("{} ({})", text ? text : "unknown error",
                     name ? name : std::to_string(result));
}

void Driver::fail(int result, std::string_view doing) const {
  if (result == kOutOfMemory) {
    throw Error(ErrorCode::memory, fmt::format("the GPU is out of memory while {}", doing),
                "use smaller shapes, or free what else is on the GPU (see nvidia-smi)");
  }
  std::string hint;
  if (result == kNotInitialized) hint = "CUDA does not survive fork(): use it in one process only";
  if (result == kDeinitialized) hint = "the process is ending: call before main returns";
  throw Error(ErrorCode::device,
              fmt::format("the NVIDIA driver failed while {}: {}", doing, describe(result)),
              std::move(hint));
}

std::string DeviceFacts::target() const {
  // From sm_90 on, the instructions that make kernels fast exist under the "a" target only.
  return fmt::format("sm_{}{}", compute_capability, compute_capability >= 90 ? "a" : "");
}

std::string DeviceFacts::describe() const {
  return fmt::format("GPU {} ({}, sm_{})", ordinal, name, compute_capability);
}

DeviceHandle device_handle(const Driver& driver, int ordinal) {
  if (ordinal < 0 || ordinal >= driver.device_count()) {
    throw Error(
        ErrorCode::device,
        fmt::format("there is no GPU {}: the driver sees {}", ordinal, driver.device_count()),
        "use Device::cpu()");
  }
  DeviceHandle device = 0;
  driver.check(driver.functions().device_get(&device, ordinal), "opening a GPU");
  return device;
}

DeviceFacts device_facts(const Driver& driver, int ordinal) {
  const DriverFunctions& f = driver.functions();
  const DeviceHandle device = device_handle(driver, ordinal);
  const auto attribute = [&](DeviceAttribute which) {
    int value = 0;
    driver.check(f.device_attribute(&value, static_cast<int>(which), device),
                 "asking a GPU for its facts");
    return value;
  };
  char name[256] = {};
  driver.check(f.device_name(name, sizeof name, device), "asking a GPU for its name");
  DeviceFacts facts{
      .ordinal = ordinal,
      .name = name,
      .compute_capability = 10 * attribute(DeviceAttribute::compute_capability_major) +
                            attribute(DeviceAttribute::compute_capability_minor),
      .multiprocessors = attribute(DeviceAttribute::multiprocessor_count),
      .max_shared_bytes = attribute(DeviceAttribute::max_shared_bytes_per_block_optin),
      .l2_bytes = attribute(DeviceAttribute::l2_cache_bytes)};
  if (facts.compute_capability < kOldestArchitecture) {
    throw Error(ErrorCode::device,
                fmt::format("GPU {} ({}) is sm_{}; sm_{} is the oldest that is supported", ordinal,
                            facts.name, facts.compute_capability, kOldestArchitecture),
                "use Device::cpu()");
  }
  return facts;
}

}  // namespace tilewright::cuda
