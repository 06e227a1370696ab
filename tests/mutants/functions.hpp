#pragma once

#include <string>

#include "generator/spec/spec.hpp"
#include "runtime/api/attention.hpp"

namespace tilewright::mutants {

/// A spec whose score_mod is another elementary function for each head, of a number for each row.
Spec functions_spec();

/// With one key, lse is the modified score: so it says what the functions give, and it is compared
/// with docs/math.md's greatest errors.
/// @return the first value that is wrong, as a sentence; empty where none is
std::string wrong_functions(const Attention& attention);

}  // namespace tilewright::mutants
