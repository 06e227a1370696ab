#pragma once

#include <vector>

#include "kernel_source.hpp"

namespace tilewright {

/// What the name of a forward kernel says of it.
/// @throws Error with code usage for another name
KernelTraits forward_traits(const KernelId& id);

/// render_kernel for a CUDA target.
KernelSource render_cuda_kernel(const SpecFacts& facts, const Target& target, const KernelId& id,
                                const jinja::Loader& loader);

}  // namespace tilewright
