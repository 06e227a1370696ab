#pragma once

#include "../generator/spec.hpp"
#include "../runtime/device.hpp"

namespace tilewright::verify {

/// Whether score_mod calls a function that the device computes fast and with about 11 bits: a
/// transcendental one on CUDA, unless the spec asks for precise_math.
bool uses_fast_math(const Spec& spec, const Device& device);

}  // namespace tilewright::verify
