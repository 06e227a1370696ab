#pragma once

#include <vector>

#include "splice.hpp"

namespace tilewright {

/// Has the checked interpretation count the rounds of a snippet's loops: each round of a `for` or
/// `while` calls tw_round(), which leaves a snippet whose loops do not end. A `while` that declares
/// a variable in its condition is not counted.
std::vector<Replacement> counted_loops(const Snippet& snippet);

}  // namespace tilewright
