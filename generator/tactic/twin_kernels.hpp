#pragma once

#include "kernel_variant.hpp"

namespace tilewright {

class SpecFacts;
class Target;

/// Whether a kernel is a twin, which a target may have in addition to the kernels that serve all
/// calls: split, resident or deterministic.
bool is_twin(const KernelVariant& kernel);

/// Whether a target has this kernel: true but for a twin that it lacks.
bool has_kernel(const SpecFacts& facts, const Target& target, const KernelVariant& kernel);

}  // namespace tilewright
