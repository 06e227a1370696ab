#pragma once

#include "../generator/spec/spec.hpp"
#include "../verify/random.hpp"

namespace tilewright::verify::fuzz {

/// Gives a spec random scales and a sink, or leaves them out, with the buffers that they read: each
/// of a tensor, of heads, or of rows.
void add_random_scales(Spec& spec, Random& random);
/// A sink alone, now and then.
void add_random_sink(Spec& spec, Random& random);

}  // namespace tilewright::verify::fuzz
