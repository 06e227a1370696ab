#include "runtime/api/device_kind.hpp"

#include "cache/sha256.hpp"
#include "runtime/compile/cpu_identity.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/cuda/targets.hpp"

namespace tilewright {

DeviceKind device_kind(const Device& device) {
  if (device.kind() == Device::Kind::cpu) {
    DeviceKind kind{.name = "cpu " + cache::sha256(cpu_identity()).hex(),
                    .targets = {Target::host_cpu()}};
    kind.targets.insert(kind.targets.end(), cpu_targets().begin(), cpu_targets().end());
    return kind;
  }
  const cuda::DeviceFacts gpu = cuda::device_facts(cuda::Driver::get(), device.index());
  return {.name = gpu.name, .targets = cuda::targets_of(gpu)};
}

}  // namespace tilewright
