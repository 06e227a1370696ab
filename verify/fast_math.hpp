#pragma once

#include "../generator/spec/spec.hpp"
#include "../runtime/api/attention.hpp"
#include "../runtime/api/device.hpp"

namespace tilewright::verify {

/// Whether score_mod calls a function that the device computes fast and with about 11 bits: a
/// transcendental one on CUDA, in f16 and bf16 or where the spec's precise_math is false.
bool uses_fast_math(const Spec& spec, const Device& device);

/// Whether the device multiplies q, k, v and the weights in TF32.
bool multiplies_tf32(const Spec& spec, const Device& device);

/// What scores and weights of the attention's products are rounded to (Rule::dtype): the spec's
/// dtype. With f8e4m3 that is so in Hopper's kernel alone; CPUs and the portable kernel multiply
/// these numbers in float32.
DType product_dtype(const Attention& attention);

}  // namespace tilewright::verify
