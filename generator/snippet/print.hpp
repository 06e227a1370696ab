#pragma once

#include <string>

#include "tree.hpp"

namespace tilewright::snippet {

/// A literal whose text begins with a minus sign: one below zero, or -0.0.
bool begins_with_minus(const Expression& literal);

/// The C++ text of an expression, with the parentheses that it needs.
std::string to_text(const Expression& expression);

/// The text for a spec's score_mod or mask_mod: an expression where the tree is one result, else a
/// body, one statement a line. Parsing it gives an equal tree.
std::string to_text(const SnippetTree& tree);

}  // namespace tilewright::snippet
