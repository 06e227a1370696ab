#pragma once

#include <vector>

#include "kernel_source.hpp"

namespace tilewright {

/// render_kernel for a CUDA target.
KernelSource render_cuda_kernel(const SpecFacts& facts, const Target& target,
                                const KernelVariant& variant, const jinja::Loader& loader);

}  // namespace tilewright
