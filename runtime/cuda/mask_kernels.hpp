#pragma once

#include <vector>

#include "../../generator/render/extrema_table.hpp"
#include "launch_scope.hpp"

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

/// Of the Attention whose kernels are loaded.
/// @throws Error with code internal if the spec's mask has none
MaskKernels find_mask_kernels(const LaunchScope& on);

}  // namespace tilewright::cuda
