#include "generator/tactic/twin_kernels.hpp"

#include "generator/tactic/cuda_tactic.hpp"
#include "generator/tactic/hopper_backward_tactic.hpp"

namespace tilewright {

bool is_twin(const KernelVariant& kernel) {
  return kernel.split || kernel.deterministic;
}

bool has_kernel(const SpecFacts& facts, const Target& target, const KernelVariant& kernel) {
  if (kernel.split) return has_split_kernel(facts, target, kernel);
  return !kernel.deterministic || has_deterministic_backward(facts, target, kernel);
}

}  // namespace tilewright
