#include "runtime/cuda/mask_kernels.hpp"

#include "base/error.hpp"
#include "runtime/cuda/call_mask.hpp"

namespace tilewright::cuda {
namespace {

// Of mask_proved, or of mask_exact, which serves where the former does not compile.
const KernelSource& mask_source(const LaunchScope& on) {
  for (const KernelBinary& binary : on.modules.binaries()) {
    const KernelRole role = binary.source.variant.role;
    if (role == KernelRole::mask_proved || role == KernelRole::mask_exact) return binary.source;
  }
  throw Error(ErrorCode::internal, "the spec's mask has no kernel");
}

}  // namespace

MaskKernels find_mask_kernels(const LaunchScope& on) {
  const KernelSource& mask = mask_source(on);
  const std::vector<ExtremaTable>& tables = mask.extrema_tables;
  return {.rows = on.kernels.kernel(mask.variant, "tilewright_mask_rows"),
          .scan = on.kernels.kernel(kMaskLists, "tilewright_mask_scan"),
          .extrema =
              tables.empty() ? nullptr : &on.kernels.kernel(kMaskLists, "tilewright_mask_extrema"),
          .tables = tables,
          .proves = mask.variant.role == KernelRole::mask_proved,
          .ordered_rows = ordered_rows(on)};
}

}  // namespace tilewright::cuda
