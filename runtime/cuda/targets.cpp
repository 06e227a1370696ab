#include "runtime/cuda/targets.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cache/bundles.hpp"
#include "runtime/cuda/find_nvrtc.hpp"
#include "runtime/library/kernel_library.hpp"

namespace tilewright::cuda {
namespace {

bool has_target(const std::string& name) {
  const std::vector<std::string>& names = Target::all_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Where bundles have kernels for a GPU, it is of use without NVRTC.
bool is_bundled(const DeviceFacts& gpu) {
  const std::shared_ptr<const cache::Bundles> bundles = default_bundles({});
  const std::vector<Target> targets = targets_of(gpu);
  return !bundles->empty() && std::any_of(targets.begin(), targets.end(), [&](const Target& t) {
    return bundles->has_ingredient("target", t.name());
  });
}

}  // namespace

std::string why_not_available() {
  static const auto& reason = *new std::string([] {
    std::string problem;
    const Driver* driver = Driver::find(&problem);
    if (!driver) return problem;
    try {
      if (!is_bundled(device_facts(*driver, 0))) find_nvrtc();
      return std::string();
    } catch (const Error& error) {
      return error.message();
    }
  }());
  return reason;
}

std::vector<Target> targets_of(const DeviceFacts& gpu) {
  std::vector<Target> targets;
  if (has_target(gpu.target())) targets.push_back(Target::parse(gpu.target()));
  // A cubin also runs on later GPUs of its generation, if it uses nothing that is particular.
  for (int sm = gpu.compute_capability; sm / 10 == gpu.compute_capability / 10; --sm) {
    const std::string name = fmt::format("sm_{}", sm);
    if (name != gpu.target() && has_target(name)) targets.push_back(Target::parse(name));
  }
  return targets;
}

Target target_for(const DeviceFacts& gpu, const std::vector<int>& architectures) {
  const auto compiles = [&](int sm) {
    return std::find(architectures.begin(), architectures.end(), sm) != architectures.end();
  };
  for (const Target& target : targets_of(gpu)) {
    if (compiles(target.sm())) return target;
  }
  throw Error(ErrorCode::compiler,
              fmt::format("{} is newer than what this NVRTC compiles for", gpu.describe()),
              "install a newer NVRTC (pip install -U nvidia-cuda-nvrtc) or name one in "
              "TILEWRIGHT_NVRTC");
}

void require_driver_for_nvrtc(int driver_version, int nvrtc_major, int nvrtc_minor) {
  if (driver_version / 1000 >= nvrtc_major) return;
  throw Error(
      ErrorCode::device,
      fmt::format("the NVIDIA driver is for CUDA {}.{}, and cannot load what NVRTC {}.{} "
                  "compiles",
                  driver_version / 1000, driver_version % 1000 / 10, nvrtc_major, nvrtc_minor),
      fmt::format("update the driver, or name an NVRTC of CUDA {} in TILEWRIGHT_NVRTC",
                  driver_version / 1000));
}

}  // namespace tilewright::cuda
