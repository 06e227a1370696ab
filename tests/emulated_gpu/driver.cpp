// The part of libcuda.so.1 that runs kernels: a module is a library for the host that nvrtc.cpp
// made, and a launch runs its blocks side by side on the host's cores. The rest is tests/fake_gpu's
// driver.
//
// TILEWRIGHT_EMULATED_SM    the GPU's compute capability, 90 unless given
// TILEWRIGHT_EMULATED_SEED  of the order in which threads run, 1 unless given

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

#include "tests/emulated_gpu/block.hpp"
#include "tests/emulated_gpu/graph.hpp"
#include "tests/emulated_gpu/tensor_map.hpp"

namespace {

constexpr int kInvalidValue = 1;
constexpr int kNotFound = 500;
constexpr int kLaunchFailed = 719;
constexpr int kNotSupported = 801;

using Entry = void (*)(void** parameters);
using ParameterBytes = const std::size_t* (*)();
using SharedMemory = unsigned char* (*)();  // of the calling thread

constexpr std::size_t kMostSharedBytes = 232448;  // of shared_memory in nvrtc.cpp
constexpr unsigned kSharedBytesUnasked = 48 << 10;

struct FunctionFacts {
  ParameterBytes parameter_bytes;
  SharedMemory shared_memory;
  unsigned most_shared_bytes = kSharedBytesUnasked;  // dynamic
};

// Every function that was asked for.
struct Functions {
  std::mutex mutex;
  std::map<void*, FunctionFacts> facts;

  FunctionFacts of(void* function) {
    const std::lock_guard lock(mutex);
    return facts.at(function);
  }

  static Functions& all() {
    static auto& functions = *new Functions;
    return functions;
  }
};

// A launch's parameters, which may be gone when a graph repeats it.
class KeptParameters {
 public:
  KeptParameters(void* function, void** parameters) {
    const std::size_t* bytes = Functions::all().of(function).parameter_bytes();
    for (; *bytes != 0; ++bytes, ++parameters) {
      copies_.emplace_back(*bytes / sizeof(Unit) + 1);
      std::memcpy(copies_.back().data(), *parameters, *bytes);
    }
  }
  std::vector<void*> pointers() {
    std::vector<void*> pointers;
    for (std::vector<Unit>& copy : copies_) pointers.push_back(copy.data());
    return pointers;
  }

 private:
  // As far as any parameter is aligned.
  struct alignas(128) Unit {
    unsigned char bytes[128];
  };
  std::vector<std::vector<Unit>> copies_;
};

long number_from(const char* variable, long otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atol(text) : otherwise;
}

// The length of a library's image, from its last part: the section headers.
std::size_t image_bytes(const void* image) {
  const auto& header = *static_cast<const Elf64_Ehdr*>(image);
  return header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize;
}

// The loader knows libraries by their names, so each gets one of its own.
void* open_image(const void* image) {
  std::string path = std::filesystem::temp_directory_path() / "emulated_kernel_XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) return nullptr;
  const auto bytes = static_cast<ssize_t>(image_bytes(image));
  const bool is_written = write(file, image, static_cast<std::size_t>(bytes)) == bytes;
  close(file);
  void* library = is_written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path.c_str());
  return library;
}

// Each launch has another, so that a call that is repeated runs in another order.
std::uint64_t next_seed() {
  static std::atomic<std::uint64_t> launches = 0;
  return static_cast<std::uint64_t>(number_from("TILEWRIGHT_EMULATED_SEED", 1)) + launches++;
}

struct Launch {
  void* function;
  unsigned grid;
  unsigned threads;
  unsigned shared_bytes;
};

// A block finds NaN in its dynamic shared memory, and what lies after it is not its own.
constexpr unsigned char kUnwritten = 0xff;

std::string run_block_in_memory(const Launch& launch, unsigned block, unsigned char* memory,
                                std::uint64_t seed, void** parameters) {
  std::memset(memory, kUnwritten, kMostSharedBytes);
  std::string failure = emulated::run_block(block, launch.grid, launch.threads, seed, [&] {
    reinterpret_cast<Entry>(launch.function)(parameters);
  });
  if (!failure.empty()) return failure;
  const bool is_left_alone = std::all_of(memory + launch.shared_bytes, memory + kMostSharedBytes,
                                         [](unsigned char byte) { return byte == kUnwritten; });
  if (is_left_alone) return {};
  return "block " + std::to_string(block) + " wrote behind the " +
         std::to_string(launch.shared_bytes) + " bytes of shared memory that its launch has";
}

// Runs blocks first, first + step, ...; returns why one did not end.
std::string run_blocks(const Launch& launch, SharedMemory shared_memory, void** parameters,
                       unsigned first, unsigned step, std::uint64_t seed) {
  for (unsigned block = first; block < launch.grid; block += step) {
    std::string failure = run_block_in_memory(launch, block, shared_memory(), seed, parameters);
    if (!failure.empty()) return failure;
  }
  return {};
}

// Sums of four blocks' terms in float32 have other bits in another order, those of two have not.
constexpr unsigned kLeastWorkers = 4;

int run(const Launch& launch, void** parameters) {
  const FunctionFacts facts = Functions::all().of(launch.function);
  if (launch.shared_bytes > facts.most_shared_bytes) return kInvalidValue;
  const unsigned grid = launch.grid;
  const std::uint64_t seed = next_seed();
  const unsigned workers =
      std::min(grid, std::max(kLeastWorkers, std::thread::hardware_concurrency()));
  std::vector<std::string> failures(workers);
  std::vector<std::thread> running;
  for (unsigned i = 0; i < workers; ++i) {
    running.emplace_back([&, i] {
      failures[i] = run_blocks(launch, facts.shared_memory, parameters, i, workers, seed);
    });
  }
  for (std::thread& worker : running) worker.join();
  for (const std::string& failure : failures) {
    if (failure.empty()) continue;
    std::fprintf(stderr, "emulated GPU: %s\n", failure.c_str());
    return kLaunchFailed;
  }
  return 0;
}

}  // namespace

extern "C" {

int cuDeviceGetName(char* name, int, int) {
  return std::strcpy(name, "emulated GPU"), 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  const int sm = static_cast<int>(number_from("TILEWRIGHT_EMULATED_SM", 90));
  switch (attribute) {
    case 16:  // multiprocessors: few, so that small calls make blocks work on several tiles
      return *value = static_cast<int>(number_from("TILEWRIGHT_EMULATED_MULTIPROCESSORS", 3)), 0;
    case 38:  // bytes of the L2 cache
      return *value = static_cast<int>(number_from("TILEWRIGHT_EMULATED_L2", 50 << 20)), 0;
    case 75:
      return *value = sm / 10, 0;
    case 76:
      return *value = sm % 10, 0;
    case 97:
      return *value = (sm >= 90 ? 227 : sm == 80 ? 163 : 99) * 1024, 0;
    default:
      return kInvalidValue;
  }
}

// The emulated GPU has its primary context alone.
int cuCtxCreate_v2(void**, unsigned, int) {
  return kNotSupported;
}
int cuCtxDestroy_v2(void*) {
  return kNotSupported;
}

int cuModuleLoadData(void** module, const void* image) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (std::memcmp(image, ELFMAG, SELFMAG) != 0) return kInvalidValue;
  *module = open_image(image);
  if (!*module) {
    std::fprintf(stderr, "emulated GPU: %s\n", dlerror());
    return kInvalidValue;
  }
  const auto core = static_cast<const emulated::Core**>(dlsym(*module, "emulated_core"));
  if (!core) return kInvalidValue;
  *core = &emulated::core();
  return 0;
}
int cuModuleUnload(void* module) {
  return dlclose(module);
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  *function = dlsym(module, (std::string("emulated_") + name).c_str());
  void* const bytes = dlsym(module, (std::string("emulated_bytes_") + name).c_str());
  void* const memory = dlsym(module, "emulated_shared_memory");
  if (!*function || !bytes || !memory) return kNotFound;
  Functions& functions = Functions::all();
  const std::lock_guard lock(functions.mutex);
  functions.facts[*function] = {.parameter_bytes = reinterpret_cast<ParameterBytes>(bytes),
                                .shared_memory = reinterpret_cast<SharedMemory>(memory)};
  return 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  constexpr int kMaxDynamicSharedBytes = 8;
  if (attribute != kMaxDynamicSharedBytes || value < 0) return kInvalidValue;
  if (static_cast<std::size_t>(value) > kMostSharedBytes) return kInvalidValue;
  Functions& functions = Functions::all();
  const std::lock_guard lock(functions.mutex);
  functions.facts.at(function).most_shared_bytes =
      std::max(kSharedBytesUnasked, static_cast<unsigned>(value));
  return 0;
}

int cuLaunchKernel(void* function, unsigned grid, unsigned, unsigned, unsigned threads, unsigned,
                   unsigned, unsigned shared_bytes, void*, void** parameters, void**) {
  const Launch launch = {
      .function = function, .grid = grid, .threads = threads, .shared_bytes = shared_bytes};
  if (emulated::is_capturing()) {
    emulated::capture([=, kept = KeptParameters(function, parameters)]() mutable {
      return run(launch, kept.pointers().data());
    });
    return 0;
  }
  return run(launch, parameters);
}

int cuMemsetD8Async(unsigned long long to, unsigned char value, std::size_t count, void*) {
  const auto fill = [=] {
    std::memset(reinterpret_cast<void*>(to), value, count);
    return 0;
  };
  if (!emulated::is_capturing()) return fill();
  emulated::capture(fill);
  return 0;
}

int cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* base,
                           const std::uint64_t* extents, const std::uint64_t* strides,
                           const std::uint32_t* box, const std::uint32_t*, int, int, int, int) {
  if (rank < 4 || rank > 5 || reinterpret_cast<std::uintptr_t>(base) % 16 != 0)
    return kInvalidValue;
  constexpr int kUint8 = 0;
  emulated::TensorMap made = {.magic = emulated::TensorMap::kMagic,
                              .box = {},
                              .rank = rank,
                              .element_bytes = type == kUint8 ? 1u : 2u,
                              .base = static_cast<unsigned char*>(base),
                              .extents = {},
                              .strides = {}};
  for (unsigned i = 0; i < rank; ++i) {
    if (extents[i] == 0 || box[i] == 0 || box[i] > 256) return kInvalidValue;
    made.extents[i] = extents[i];
    made.box[i] = box[i];
  }
  for (unsigned i = 0; i + 1 < rank; ++i) {
    if (strides[i] == 0 || strides[i] % 16 != 0) return kInvalidValue;
    made.strides[i] = strides[i];
  }
  std::memset(map, 0, 128);
  std::memcpy(map, &made, sizeof made);
  return 0;
}

}  // extern "C"
