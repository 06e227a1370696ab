#pragma once

#include <string>
#include <vector>

#include "../../generator/spec/target.hpp"
#include "driver.hpp"

namespace tilewright::cuda {

/// Why no kernel can run on any GPU of this machine; empty where one can.
std::string why_not_available();

/// What kernels are compiled for on a GPU: the target of its own, or the nearest older one of its
/// generation that is known.
/// @param architectures that the compiler knows: 80, 90, 120
/// @throws Error with code compiler where there is none
Target target_for(const DeviceFacts& gpu, const std::vector<int>& architectures);

/// Every target whose kernels a GPU can run, the most specific first: its own, then older ones of
/// its generation.
std::vector<Target> targets_of(const DeviceFacts& gpu);

/// Refuses an NVRTC whose cubins the driver cannot load.
/// @param driver_version as the driver says it: 12040 for 12.4
/// @throws Error with code device
void require_driver_for_nvrtc(int driver_version, int nvrtc_major, int nvrtc_minor);

}  // namespace tilewright::cuda
