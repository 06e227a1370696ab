#pragma once

#include "../library/tuned_tactic.hpp"
#include "device.hpp"

namespace tilewright {

/// A GPU's name, or a digest of what decides a CPU's code; and the targets that it runs.
/// @throws Error with code device where the GPU is missing
DeviceKind device_kind(const Device& device);

}  // namespace tilewright
