#include "runtime/cuda/kernel_build.hpp"

#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/tactic/twin_kernels.hpp"
#include "runtime/cuda/find_nvrtc.hpp"
#include "runtime/cuda/targets.hpp"

namespace tilewright::cuda {
namespace {

// What NVRTC compiles for; where there is none, or it must not be used, what the store holds.
Target compiled_target(const Driver& driver, const DeviceFacts& gpu, const SpecFacts& facts,
                       const std::vector<KernelVariant>& kernels, const Toolchain& toolchain) {
  const std::vector<Target> targets = targets_of(gpu);
  if (targets.empty()) {
    throw Error(
        ErrorCode::device,
        fmt::format("{} is of a generation that this tilewright has no target for", gpu.describe()),
        "use a newer tilewright, or the CPU: Device::cpu(), TILEWRIGHT_DEVICE=cpu");
  }
  const auto stored = [&] { return stored_target(facts, targets, kernels, toolchain); };
  if (!*with_defaults(toolchain).jit) return stored().value_or(targets.at(0));
  try {
    const NvrtcFacts nvrtc = find_nvrtc();
    require_driver_for_nvrtc(driver.version(), nvrtc.major, nvrtc.minor);
    return target_for(gpu, nvrtc.architectures);
  } catch (const Error&) {
    if (std::optional<Target> target = stored()) return *target;
    throw;
  }
}

}  // namespace

BuiltKernels build_for_gpu(const Driver& driver, const DeviceFacts& gpu, const SpecFacts& facts,
                           const std::vector<KernelVariant>& kernels, const Toolchain& toolchain) {
  std::vector<KernelVariant> needed = kernels;  // on every target
  std::erase_if(needed, is_twin);
  std::optional<Target> target = bundled_target(facts, targets_of(gpu), needed, toolchain);
  if (!target) target.emplace(compiled_target(driver, gpu, facts, needed, toolchain));
  std::vector<KernelVariant> all = kernels;
  std::erase_if(all,
                [&](const KernelVariant& kernel) { return !has_kernel(facts, *target, kernel); });
  return {*target, build_or_fallback_kernels(facts, *target, all, toolchain)};
}

}  // namespace tilewright::cuda
