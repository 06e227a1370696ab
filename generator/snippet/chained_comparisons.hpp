#pragma once

#include "brackets.hpp"

namespace tilewright {

/// Refuses `0 <= x < 5`, which C++ reads as `(0 <= x) < 5`: two comparisons that nothing but their
/// operands separates. Comparisons in brackets, `(a < b) == (c < d)`, are accepted.
/// @throws Error with code snippet at the second comparison; the hint holds the text to write
void refuse_chained_comparisons(const SnippetBrackets& snippet);

}  // namespace tilewright
