#include "generator/tactic/describe_backward.hpp"

#include <optional>

#include <fmt/format.h>

#include "generator/snippet/gradient_terms.hpp"
#include "generator/tactic/backward_tactic.hpp"
#include "generator/tactic/hopper_backward_tactic.hpp"
#include "generator/tactic/tactic.hpp"

namespace tilewright {

std::string describe_backward(const SpecFacts& facts, const Target& target,
                              const KernelVariant& kernel) {
  if (target.is_cpu()) {
    Spec free = facts.spec;  // a forced tactic is for forward kernels
    free.tactic.reset();
    return choose_tactic(free, target).describe();
  }
  if (const auto hopper = hopper_backward_tactic(facts, target, kernel)) {
    return fmt::format("{} columns={} rows={}", kHopper, hopper->columns, hopper->rows);
  }
  const std::optional<GradientTerms> terms = gradient_terms(facts);
  const std::int64_t diagonals = terms ? portable_diagonals(*terms) : 0;
  return Tactic{choose_backward_tactic(facts, target, kernel, diagonals).tiles}.describe();
}

}  // namespace tilewright
