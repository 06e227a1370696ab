#pragma once

#include "../generator/spec/spec.hpp"
#include "../runtime/api/device.hpp"

namespace tilewright::verify {

/// Whether score_mod calls a function that the device computes fast and with about 11 bits: a
/// transcendental one on CUDA, in f16 and bf16 or where the spec's precise_math is false.
bool uses_fast_math(const Spec& spec, const Device& device);

}  // namespace tilewright::verify
