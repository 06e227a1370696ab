#pragma once

#include "brackets.hpp"

namespace tilewright {

/// Refuses text that compiles and means something else than it says: `=` in a condition, a comma
/// that drops a value (`bias[h, q_idx]`, `return a, b;`), `if (x);`; and Python's `**` and
/// `a if c else b`, which a compiler would explain worse.
/// @throws Error with code snippet at the operator; the hint holds the text to write
void refuse_misread_operators(const SnippetBrackets& snippet, bool is_expression);

}  // namespace tilewright
