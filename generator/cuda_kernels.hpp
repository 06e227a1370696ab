#pragma once

#include <vector>

#include "kernel_source.hpp"

namespace tilewright {

/// kernel_set for a CUDA target: forward and forward_masked, each for tensors whose bases and
/// strides are multiples of 16 bytes and, `_unaligned`, for all others; mask_lists, mask_exact,
/// mask_proved.
std::vector<KernelId> cuda_kernel_set(const Spec& spec);

/// What the name of a forward kernel says of it.
/// @throws Error with code usage for another name
KernelTraits forward_traits(const KernelId& id);

/// render_kernel for a CUDA target.
KernelSource render_cuda_kernel(const Spec& spec, const Target& target, const KernelId& id,
                                const jinja::Loader& loader);

}  // namespace tilewright
