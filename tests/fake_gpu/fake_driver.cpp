// A libcuda.so.1 whose GPU is the host's memory and whose kernels do nothing: enough to see which
// calls the runtime makes, in which context, and that it gives everything back. A function that
// needs a current context refuses without one, as the real one does.
//
// What tests/emulated_gpu does in earnest is weak here: it links this file and its own.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#define WEAK __attribute__((weak))

namespace {

using Pointer = unsigned long long;

constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidContext = 201;
constexpr int kNoBinaryForGpu = 209;

// The stream of priority 0, in which the memory pool is made. It is kept as long as the process
// lives.
char pool_stream;

thread_local void* current[16];
thread_local int depth = 0;
thread_local int capture_mode = 0;

int in_context(int result = 0) {
  return depth > 0 ? result : kInvalidContext;
}

int allocate(Pointer* pointer, std::size_t bytes);

}  // namespace

extern "C" {

// What tests look at and set.
long fake_launches = 0;
const char* fake_launched[256] = {};  // launch i's kernel at i % 256
std::atomic<long> fake_held = 0;      // allocations and modules, of any thread
int fake_refuse_modules = 0;
int fake_refuse_memory = 0;
std::atomic<int> fake_hold_pool = 0;  // the memory pool is not there before this is 0
int fake_primary_is_active = 0;
char fake_contexts[2];  // the first is the primary one
long fake_tensor_maps = 0;
int fake_generation = 9;  // the major number of its compute capability
unsigned fake_grid = 0;
unsigned fake_shared_bytes = 0;

int cuInit(unsigned) {
  return 0;
}
int cuDriverGetVersion(int* version) {
  return *version = 13000, 0;
}
int cuGetErrorName(int, const char** name) {
  return *name = "CUDA_ERROR_FAKE", 0;
}
int cuGetErrorString(int, const char** text) {
  return *text = "a fake error", 0;
}
int cuDeviceGetCount(int* count) {
  const char* const given = std::getenv("TILEWRIGHT_EMULATED_GPUS");
  return *count = given == nullptr ? 1 : std::atoi(given), 0;
}
int cuDeviceGet(int* device, int ordinal) {
  return *device = ordinal, 0;
}
WEAK int cuDeviceGetName(char* name, int, int) {
  return std::strcpy(name, "Fake"), 0;
}
WEAK int cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 16:
      return *value = 132, 0;
    case 38:
      return *value = 50 << 20, 0;
    case 75:
      return *value = fake_generation, 0;
    case 76:
      return *value = 0, 0;
    case 97:
      return *value = 227 * 1024, 0;
    default:
      return kInvalidValue;
  }
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  fake_primary_is_active = 1;
  return *context = &fake_contexts[0], 0;
}
int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  return *active = fake_primary_is_active, 0;
}
int cuCtxGetCurrent(void** context) {
  return *context = depth > 0 ? current[depth - 1] : nullptr, 0;
}
int cuCtxPushCurrent_v2(void* context) {
  return current[depth++] = context, 0;
}
int cuCtxPopCurrent_v2(void** context) {
  if (depth == 0) return kInvalidContext;
  return *context = current[--depth], 0;
}
int cuCtxGetDevice(int* device) {
  return *device = 0, in_context();
}
int cuCtxSynchronize() {
  return in_context();
}
int cuCtxGetId(void* context, unsigned long long* id) {
  return *id = static_cast<unsigned long long>(static_cast<char*>(context) - fake_contexts) + 1, 0;
}
WEAK int cuModuleLoadData(void** module, const void* image) {
  if (fake_refuse_modules != 0) return kNoBinaryForGpu;
  if (std::memcmp(image, "\177ELF", 4) != 0) return kInvalidValue;
  *module = &fake_contexts;
  return ++fake_held, in_context();
}
WEAK int cuModuleUnload(void*) {
  return --fake_held, in_context();
}
// A function is its name.
WEAK int cuModuleGetFunction(void** function, void*, const char* name) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard lock(mutex);
  return *function = const_cast<char*>(names.insert(name).first->c_str()), in_context();
}
WEAK int cuFuncSetAttribute(void*, int attribute, int) {
  return attribute == 8 ? 0 : kInvalidValue;
}
WEAK int cuLaunchKernel(void* function, unsigned grid, unsigned, unsigned, unsigned, unsigned,
                        unsigned, unsigned shared_bytes, void*, void**, void**) {
  fake_launched[fake_launches++ % 256] = static_cast<const char*>(function);
  fake_grid = grid;
  fake_shared_bytes = shared_bytes;
  return in_context();
}
// Refuses what the driver refuses.
WEAK int cuTensorMapEncodeTiled(void* map, int, unsigned rank, void* base,
                                const std::uint64_t* extents, const std::uint64_t* strides,
                                const std::uint32_t* box, const std::uint32_t*, int, int, int,
                                int) {
  bool fits = reinterpret_cast<std::uintptr_t>(map) % 64 == 0 &&
              reinterpret_cast<std::uintptr_t>(base) % 16 == 0;
  for (unsigned i = 0; i < rank; ++i) fits = fits && extents[i] > 0 && box[i] > 0 && box[i] <= 256;
  for (unsigned i = 0; i + 1 < rank; ++i) {
    fits = fits && strides[i] > 0 && strides[i] % 16 == 0 && strides[i] < std::uint64_t{1} << 40;
  }
  ++fake_tensor_maps;
  return fits ? 0 : kInvalidValue;
}
int cuMemAlloc_v2(Pointer* pointer, std::size_t bytes) {
  return allocate(pointer, bytes);
}
int cuMemHostAlloc(void** data, std::size_t bytes, unsigned) {
  return allocate(reinterpret_cast<Pointer*>(data), bytes);
}
int cuMemFreeHost(void* data) {
  std::free(data);
  return --fake_held, in_context();
}
int cuMemAllocAsync(Pointer* pointer, std::size_t bytes, void* stream) {
  if (stream == &pool_stream) {
    while (fake_hold_pool != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return *pointer = 2, in_context(capture_mode == 2 ? 0 : kInvalidValue);
  }
  return fake_hold_pool != 0 ? kInvalidValue : allocate(pointer, bytes);
}
int cuMemFree_v2(Pointer pointer) {
  std::free(reinterpret_cast<void*>(pointer));
  return --fake_held, in_context();
}
int cuMemFreeAsync(Pointer pointer, void* stream) {
  return stream == &pool_stream ? in_context() : cuMemFree_v2(pointer);
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return 0;
}
int cuMemcpyHtoDAsync_v2(Pointer to, const void* from, std::size_t bytes, void*) {
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), in_context();
}
int cuMemcpyDtoHAsync_v2(void* to, Pointer from, std::size_t bytes, void*) {
  return std::memcpy(to, reinterpret_cast<const void*>(from), bytes), in_context();
}
WEAK int cuMemsetD8Async(Pointer to, unsigned char value, std::size_t count, void*) {
  return std::memset(reinterpret_cast<void*>(to), value, count), in_context();
}
int cuStreamSynchronize(void*) {
  return in_context();
}
// Of a graph the calls alone: what is captured runs at once, and a launch of it does nothing.
int cuStreamCreate(void** stream, unsigned) {
  return *stream = &fake_contexts, ++fake_held, in_context();
}
int cuStreamDestroy_v2(void* stream) {
  if (stream != &pool_stream) --fake_held;
  return in_context();
}
int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  // The pool is made in relaxed mode; NCCL and context parallel make other streams.
  if (priority != 0 || capture_mode != 2) return cuStreamCreate(stream, flags);
  return *stream = &pool_stream, in_context();
}
int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return *least = 0, *greatest = -5, in_context();
}
int cuStreamWaitEvent(void*, void* event, unsigned) {
  return in_context(event == nullptr ? kInvalidValue : 0);
}
int cuStreamQuery(void*) {
  return in_context();
}
// CUDA_MEMCPY2D.
struct PitchedCopy {
  std::size_t from_x, from_y;
  int from_memory;
  const void* from_host;
  Pointer from;
  void* from_array;
  std::size_t from_pitch, to_x, to_y;
  int to_memory;
  void* to_host;
  Pointer to;
  void* to_array;
  std::size_t to_pitch, width, height;
};
int cuMemcpy2DAsync_v2(const PitchedCopy* copy, void*) {
  if (copy->from_memory != 2 || copy->to_memory != 2) return kInvalidValue;
  for (std::size_t row = 0; row < copy->height; ++row) {
    std::memcpy(reinterpret_cast<void*>(copy->to + row * copy->to_pitch),
                reinterpret_cast<const void*>(copy->from + row * copy->from_pitch), copy->width);
  }
  return in_context();
}
WEAK int cuStreamBeginCapture_v2(void* stream, int) {
  return in_context(stream == nullptr ? kInvalidValue : 0);
}
WEAK int cuStreamEndCapture(void*, void** graph) {
  return *graph = &fake_contexts, ++fake_held, in_context();
}
WEAK int cuGraphInstantiateWithFlags(void** executable, void*, unsigned long long) {
  return *executable = &fake_contexts, ++fake_held, in_context();
}
WEAK int cuGraphLaunch(void* executable, void*) {
  return in_context(executable == nullptr ? kInvalidValue : 0);
}
WEAK int cuGraphExecDestroy(void*) {
  return --fake_held, in_context();
}
WEAK int cuGraphDestroy(void*) {
  return --fake_held, in_context();
}
int cuEventCreate(void** event, unsigned) {
  *event = &fake_contexts;
  return ++fake_held, in_context();
}
int cuEventDestroy_v2(void*) {
  return --fake_held, in_context();
}
int cuEventRecord(void*, void*) {
  return in_context();
}
int cuEventSynchronize(void*) {
  return in_context();
}
int cuEventElapsedTime(float* ms, void*, void*) {
  *ms = 1;
  return in_context();
}

}  // extern "C"

namespace {

int allocate(Pointer* pointer, std::size_t bytes) {
  if (fake_refuse_memory != 0) return kOutOfMemory;
  if (bytes == 0) return kInvalidValue;
  constexpr std::size_t kAlignment = 256;  // of the real driver's allocations
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) return kOutOfMemory;
  std::memset(memory, 0, rounded);
  *pointer = reinterpret_cast<Pointer>(memory);
  return ++fake_held, in_context();
}

}  // namespace
