#pragma once

#include <string>
#include <string_view>

#include "expression.hpp"

namespace tilewright::verify::fuzz {

/// A tree as JSON text: statements and expressions as arrays whose first element says what they
/// are,
///
///     ["result", ["add", ["variable", "float", "score"], ["floating", 0.5]]]
///
std::string tree_to_json(const SnippetTree& tree);

/// @throws Error with code file for anything else
SnippetTree tree_from_json(SnippetKind kind, std::string_view text);

}  // namespace tilewright::verify::fuzz
