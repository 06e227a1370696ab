#include "generator/tactic/twin_kernels.hpp"

#include "generator/tactic/backward_tactic.hpp"
#include "generator/tactic/cuda_tactic.hpp"
#include "generator/tactic/hopper_backward_tactic.hpp"
#include "generator/tactic/resident_tactic.hpp"

namespace tilewright {

bool is_twin(const KernelVariant& kernel) {
  return kernel.split || kernel.resident || kernel.deterministic;
}

bool has_kernel(const SpecFacts& facts, const Target& target, const KernelVariant& kernel) {
  if (kernel.split) return has_split_kernel(facts, target, kernel);
  if (kernel.resident) return has_resident_kernel(facts, target, kernel);
  if (!kernel.deterministic) return true;
  KernelVariant any = kernel;
  any.deterministic = false;
  return has_deterministic_backward(facts, target, kernel) ||
         (!hopper_backward_tactic(facts, target, any) && sweeps_backward_once(facts.spec, any));
}

}  // namespace tilewright
