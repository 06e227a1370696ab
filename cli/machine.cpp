#include "cli/machine.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include "runtime/thread_pool.hpp"

namespace tilewright::cli {
namespace {

namespace fs = std::filesystem;

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string cpu_isa() {
#if defined(__x86_64__)
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? "x86-64-v4" : v3 ? "x86-64-v3" : "x86-64";
#else
  return "not x86-64";
#endif
}

template <typename Function>
Function* symbol(const Library& library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library.get(), name));
}

// The few entries of the driver's interface that doctor needs, with the values of its enumerations.
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;

std::vector<GpuFacts::Gpu> list_gpus(const Library& driver) {
  auto* count_of = symbol<int(int*)>(driver, "cuDeviceGetCount");
  auto* device_get = symbol<int(int*, int)>(driver, "cuDeviceGet");
  auto* name_of = symbol<int(char*, int, int)>(driver, "cuDeviceGetName");
  auto* attribute_of = symbol<int(int*, int, int)>(driver, "cuDeviceGetAttribute");
  auto* memory_of = symbol<int(std::size_t*, int)>(driver, "cuDeviceTotalMem_v2");
  std::vector<GpuFacts::Gpu> gpus;
  int count = 0;
  if (!count_of || !device_get || !name_of || !attribute_of || !memory_of) return gpus;
  if (count_of(&count) != 0) return gpus;
  for (int index = 0; index < count; ++index) {
    int device = 0, major = 0, minor = 0;
    char name[256] = {};
    GpuFacts::Gpu gpu;
    if (device_get(&device, index) != 0) continue;
    if (name_of(name, static_cast<int>(sizeof name) - 1, device) != 0) continue;
    attribute_of(&major, kComputeCapabilityMajor, device);
    attribute_of(&minor, kComputeCapabilityMinor, device);
    memory_of(&gpu.memory_bytes, device);
    gpu.name = name;
    gpu.target = fmt::format("sm_{}{}", major, minor);
    gpus.push_back(gpu);
  }
  return gpus;
}

void add_matches(const fs::path& folder, std::vector<std::string>& paths) {
  std::error_code ignored;
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("libnvrtc.so")) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  paths.insert(paths.end(), found.begin(), found.end());
}

std::vector<fs::path> children(const fs::path& folder, const std::string& prefix) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void add_from_loader(std::vector<std::string>& paths) {
  for (const char* name : {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"}) {
    const Library library(::dlopen(name, RTLD_LAZY | RTLD_LOCAL));
    if (!library) continue;
    Dl_info info = {};
    const void* function = ::dlsym(library.get(), "nvrtcVersion");
    paths.emplace_back(function && ::dladdr(function, &info) ? info.dli_fname : name);
  }
}

void add_from_wheels(std::vector<std::string>& paths) {
  std::vector<fs::path> prefixes = {"/usr/local", "/usr"};
  if (const char* home = std::getenv("HOME"))
    prefixes.insert(prefixes.begin(), fs::path(home) / ".local");
  if (const char* venv = std::getenv("VIRTUAL_ENV")) prefixes.insert(prefixes.begin(), venv);
  for (const fs::path& prefix : prefixes) {
    for (const fs::path& python : children(prefix / "lib", "python3")) {
      for (const char* packages : {"site-packages", "dist-packages"}) {
        for (const fs::path& part : children(python / packages / "nvidia", "cu")) {
          add_matches(part / "lib", paths);
        }
      }
    }
  }
}

}  // namespace

CpuFacts cpu_facts() {
  return {.model = cpu_model(), .isa = cpu_isa(), .threads = ThreadPool::default_size()};
}

GpuFacts gpu_facts() {
  GpuFacts facts;
  const Library driver(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL));
  if (!driver) {
    facts.problem = "there is no libcuda.so.1";
    return facts;
  }
  auto* start = symbol<int(unsigned)>(driver, "cuInit");
  auto* version_of = symbol<int(int*)>(driver, "cuDriverGetVersion");
  int version = 0;
  if (version_of && version_of(&version) == 0) {
    facts.driver = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  }
  const int status = start ? start(0) : -1;
  if (status != 0) {
    facts.problem = fmt::format("cuInit fails with status {}", status);
    return facts;
  }
  facts.gpus = list_gpus(driver);
  if (facts.gpus.empty()) facts.problem = "the driver lists no GPU";
  return facts;
}

std::vector<std::string> nvrtc_paths() {
  std::vector<std::string> paths;
  std::error_code ignored;
  if (const char* named = std::getenv("TILEWRIGHT_NVRTC"); named && fs::exists(named, ignored)) {
    paths.emplace_back(named);
  }
  add_from_loader(paths);
  for (const fs::path& toolkit : children("/usr/local", "cuda"))
    add_matches(toolkit / "lib64", paths);
  add_from_wheels(paths);
  // A toolkit is found by several of its names; one file is one finding.
  std::vector<std::string> unique;
  std::vector<fs::path> seen;
  for (const std::string& path : paths) {
    const fs::path file = fs::weakly_canonical(path, ignored);
    if (std::find(seen.begin(), seen.end(), file) != seen.end()) continue;
    seen.push_back(file);
    unique.push_back(path);
  }
  return unique;
}

std::vector<std::string> tilewright_variables() {
  std::vector<std::string> variables;
  for (char** entry = ::environ; entry && *entry; ++entry) {
    if (std::string(*entry).starts_with("TILEWRIGHT_")) variables.emplace_back(*entry);
  }
  std::sort(variables.begin(), variables.end());
  return variables;
}

}  // namespace tilewright::cli
