#pragma once

#include <array>
#include <optional>

#include "../verify/random.hpp"
#include "coverage.hpp"
#include "features.hpp"

namespace tilewright::verify::fuzz {

/// One value for each factor, which a case is then made to show; -1 where the factor is left out.
using Plan = std::array<int, kFactors>;

inline int& at(Plan& plan, Factor factor) {
  return plan[static_cast<std::size_t>(factor)];
}
inline int at(const Plan& plan, Factor factor) {
  return plan[static_cast<std::size_t>(factor)];
}

/// A random plan out of allowed values of which every two can meet.
/// @param wanted two features that it must hold
/// @return nothing where that cannot be
std::optional<Plan> random_plan(const Features& allowed, Random& random,
                                const std::optional<FeaturePair>& wanted = {});

}  // namespace tilewright::verify::fuzz
