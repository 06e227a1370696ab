#include "cli/machine.hpp"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include "cache/remote_options.hpp"
#include "runtime/compile/cpu_identity.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/cuda/nvrtc.hpp"

namespace tilewright::cli {
namespace {

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
  const std::vector<Target>& targets = cpu_targets();
  return targets.empty() ? "x86-64" : targets[0].name().substr(std::string_view("cpu-").size());
#else
  return "not x86-64";
#endif
}

std::string cuda_version(int major, int minor) {
  return fmt::format("{}.{}", major, minor);
}

// The kernel module says which release of the driver it is; libcuda knows only its CUDA version.
std::string driver_release(const cuda::Driver& driver) {
  std::ifstream file("/sys/module/nvidia/version");
  if (std::string release; file >> release) return release;
  return "for CUDA " + cuda_version(driver.version() / 1000, driver.version() % 1000 / 10);
}

}  // namespace

GpuFacts gpu_facts(const Device& device) {
  const cuda::Driver& driver = cuda::Driver::get();
  const cuda::DeviceFacts gpu = cuda::device_facts(driver, device.index());
  const cuda::Nvrtc& nvrtc = cuda::Nvrtc::get();
  return {.name = gpu.name,
          .target = gpu.target(),
          .driver = driver_release(driver),
          .nvrtc = cuda_version(nvrtc.major(), nvrtc.minor())};
}

std::string describe(const GpuFacts& gpu) {
  return fmt::format("{} ({}), driver {}, NVRTC {}", gpu.name, gpu.target, gpu.driver, gpu.nvrtc);
}

Json to_json(const GpuFacts& gpu) {
  return {{"name", gpu.name}, {"target", gpu.target}, {"driver", gpu.driver}, {"nvrtc", gpu.nvrtc}};
}

CpuFacts cpu_facts() {
  return {.model = cpu_model(), .isa = cpu_isa()};
}

std::vector<std::string> tilewright_variables() {
  std::vector<std::string> variables;
  for (char** entry = ::environ; entry && *entry; ++entry) {
    const std::string variable = *entry;
    if (!variable.starts_with("TILEWRIGHT_")) continue;
    const std::size_t value = variable.find('=') + 1;
    variables.push_back(variable.starts_with("TILEWRIGHT_REMOTE_CACHE=")
                            ? variable.substr(0, value) +
                                  cache::without_credentials(variable.substr(value))
                            : variable);
  }
  std::sort(variables.begin(), variables.end());
  return variables;
}

}  // namespace tilewright::cli
