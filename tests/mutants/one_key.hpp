#pragma once

#include <string>
#include <vector>

#include "generator/spec/spec.hpp"
#include "runtime/api/attention.hpp"

namespace tilewright::mutants {

// With one key a row of out is that key's row of v, rounded to out's dtype: an exact test of every
// conversion between memory and registers, where the rule for many keys allows two ulp.

/// A spec for each pair of dtypes that a kernel converts between.
std::vector<Spec> one_key_specs();

/// Runs one key whose v holds, for 16 bits every number that there is, for f32 every number of 16
/// bits, what lies half way to its neighbour, that number's own neighbours, and numbers too large.
/// @return the first element that is wrong, as a sentence; empty where none is
std::string wrong_with_one_key(const Attention& attention);

}  // namespace tilewright::mutants
