#pragma once

#include "../snippet/interpretation.hpp"
#include "../snippet/spec_facts.hpp"
#include "engine/value.hpp"

namespace tilewright {

/// What snippet/derivative.hpp.jinja reads, and whether the kernel sums gradients of buffers and
/// scalars.
/// @throws Error with code snippet where score_mod's text does not say its derivative
jinja::Map derivative_context(const SpecFacts& facts, const Interpretation& interpretation,
                              bool takes_difference = false);

}  // namespace tilewright
