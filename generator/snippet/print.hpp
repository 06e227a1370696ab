#pragma once

#include <cstddef>
#include <string>

#include "tree.hpp"

namespace tilewright::snippet {

/// The C++ text of an expression, with the parentheses that it needs.
std::string to_text(const Expression& expression);

/// The text for a spec's score_mod or mask_mod: an expression where the tree is one result, else a
/// body, one statement a line. Parsing it gives an equal tree.
std::string to_text(const SnippetTree& tree);

/// Nodes of all expressions, and statements: what shrinking makes smaller.
std::size_t size_of(const SnippetTree& tree);
std::size_t size_of(const Expression& expression);

}  // namespace tilewright::snippet
