#pragma once

#include <cstdint>
#include <string>

#include "generator/spec/spec.hpp"

namespace tilewright::masks {

/// A spec whose mask_mod is `count` random masks, of which the scalar `which` chooses one:
/// compiling costs most, and one compile serves them all. Every mask is defined for all elements,
/// and within what the interval interpretation understands: int and bool, all their operators and
/// functions, int and bool buffers in one, two and three dimensions, floats in comparisons; local
/// variables, if, early return, loops, lambdas. The block is random too. The same seed gives the
/// same spec.
Spec random_masks(std::uint64_t seed, int count);

}  // namespace tilewright::masks
