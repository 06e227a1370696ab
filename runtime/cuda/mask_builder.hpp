#pragma once

#include "arguments.hpp"
#include "modules.hpp"

namespace tilewright::cuda {

/// The three kernels of templates/cuda/mask_exact.cu.jinja.
struct MaskKernels {
  const Kernel& count;
  const Kernel& scan;
  const Kernel& fill;
};

/// Classifies every tile and lists them, in the stream's order. Waits once, for the number of
/// tiles.
/// @param fingerprint its batch and heads say how many lists are made
/// @throws Error with code block_mask for more tiles than a launch takes; device; memory
BlockMask build_block_mask(const Driver& driver, const ContextScope& scope,
                           const MaskKernels& kernels, MaskFingerprint fingerprint,
                           const Shape& shape, const BindingArguments& bindings, Stream stream);

}  // namespace tilewright::cuda
