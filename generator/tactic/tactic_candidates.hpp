#pragma once

#include <vector>

#include "tactic.hpp"

namespace tilewright {

/// Tactics that may be faster than the one that choose_tactic takes for a dense spec, as a spec
/// forces them: the parameters that are told apart, the others being chosen. Each fits all forward
/// kernels of the spec. No two make an equal tactic of the kernel that serves most calls, and none
/// makes the chosen one. None for a spec that forces a tactic.
std::vector<TacticSpec> tactic_candidates(const SpecFacts& facts, const Target& target);

}  // namespace tilewright
