#pragma once

#include <vector>

#include "../../generator/snippet/spec_facts.hpp"
#include "../library/kernel_library.hpp"
#include "driver.hpp"

namespace tilewright::cuda {

/// The binaries of an Attention's kernels, and the target that they are for.
struct BuiltKernels {
  Target target;
  std::vector<KernelBinary> binaries;
};

/// Takes the kernels from bundles or the store, or compiles them for a GPU.
/// @throws Error as build_kernels; with code device where driver, GPU and NVRTC do not fit
BuiltKernels build_for_gpu(const Driver& driver, const DeviceFacts& gpu, const SpecFacts& facts,
                           const std::vector<KernelVariant>& kernels, const Toolchain& toolchain);

}  // namespace tilewright::cuda
