#pragma once

#include <vector>

#include "../../generator/render/extrema_table.hpp"
#include "arguments.hpp"
#include "modules.hpp"

namespace tilewright::cuda {

/// The kernels of templates/cuda/kernels/mask.cu.jinja and mask_lists.cu.jinja.
struct MaskKernels {
  const Kernel& rows;
  const Kernel& scan;
  const Kernel* extrema;             ///< null where there are no tables
  std::vector<ExtremaTable> tables;  ///< what proofs read; none for mask_exact
  bool proves;                       ///< whether rows are mask_proved's
  std::int64_t ordered_rows;         ///< of q, of what forward's order of work is made of
};

/// Lists the tiles of a block mask in the stream's order. Waits once, for the number of tiles, and
/// where the caller gives a capacity not at all.
/// @param fingerprint its batch and heads say how many lists are made
/// @throws Error with code block_mask for more rows of tiles than a launch takes; device; memory
BlockMask build_block_mask(const Driver& driver, const ContextScope& scope,
                           const MaskKernels& kernels, MaskFingerprint fingerprint,
                           const Shape& shape, const Bindings& bindings,
                           const BlockMaskOptions& options);

/// Lists the tiles anew in the memory of a mask that was built with a capacity in this context.
/// Neither waits nor allocates.
/// @throws Error with code block_mask for a mask that was not, or whose tables have grown
void rebuild_block_mask(const Driver& driver, const ContextScope& scope, const MaskKernels& kernels,
                        const BlockMask& mask, const Shape& shape, const Bindings& bindings,
                        tilewright::Stream stream);

}  // namespace tilewright::cuda
