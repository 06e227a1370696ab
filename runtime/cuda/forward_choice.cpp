#include "runtime/cuda/forward_choice.hpp"

#include <algorithm>
#include <cstdint>

#include "runtime/cuda/tensor_maps.hpp"

namespace tilewright::cuda {
namespace {

// factor: that scores are multiplied by before score_mod.
bool suits_sizes(const Kernel& kernel, const ForwardCall& call, float factor) {
  return factor >= kernel.launch.least_factor && factor <= kernel.launch.greatest_factor &&
         call.shape.kv_len >= std::max<std::int64_t>(kernel.launch.least_kv_len, 1);
}

}  // namespace

ForwardChoice choose_forward(const LaunchScope& on, const ForwardCall& call,
                             const Bindings& bindings) {
  const KernelVariant& variant = on.facts.variants.forward;
  const abi::cuda::Scaling scaling = plain_scaling(on.spec, call);
  const FoldedFactors folded = on.facts.factors.fold(bindings.scalars());
  const Kernel& kernel = on.kernels.kernel(variant, kForwardEntry);
  if (kernel.launch.kv_box_rows == 0) {
    if (suits_sizes(kernel, call, scaling.factor) && is_aligned(on.spec, call)) {
      return {kernel, scaling};
    }
  } else {
    // score_mod's factors are left to the scaling.
    const abi::cuda::Scaling with_factors = {scaling.factor * folded.of_score,
                                             scaling.to_log2 * folded.of_result};
    if (suits_sizes(kernel, call, with_factors.factor) && folded.fit &&
        on.driver.functions().tensor_map_encode != nullptr && fit_tensor_maps(on.spec, call)) {
      return {kernel, with_factors};
    }
  }
  return {on.kernels.kernel(unaligned(variant), kForwardEntry), scaling};
}

ForwardChoice split_twin(const LaunchScope& on, const ForwardChoice& choice) {
  return {on.kernels.kernel(on.facts.variants.split, kForwardEntry), choice.scaling};
}

ForwardChoice resident_twin(const LaunchScope& on, const ForwardChoice& choice) {
  return {on.kernels.kernel(on.facts.variants.resident, kForwardEntry), choice.scaling};
}

abi::cuda::Scaling plain_scaling(const Spec& spec, const ForwardCall& call) {
  return abi::cuda::scaling(static_cast<float>(call.scale), !spec.score_mod.empty());
}

}  // namespace tilewright::cuda
