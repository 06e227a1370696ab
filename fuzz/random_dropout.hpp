#pragma once

#include "../generator/spec/spec.hpp"
#include "../verify/random.hpp"
#include "case.hpp"

namespace tilewright::verify::fuzz {

/// Gives a spec dropout: a probability for the call or for each head, from 0 to 1 or outside, NaN
/// among them, that is written or read, and a seed that is a scalar or a buffer. It is computed
/// without rounding, so all devices draw alike.
void add_random_dropout(Spec& spec, bool seed_in_buffer, Random& random);

/// A value of one of those scalars of a call that dropout reads: its seed, or a probability. False
/// for any other.
bool choose_dropout_scalar(const std::string& name, FuzzCase& fuzz_case, Random& random);

}  // namespace tilewright::verify::fuzz
