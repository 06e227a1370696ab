#pragma once

#include <map>
#include <string>
#include <string_view>

#include "../../generator/snippet.hpp"

namespace tilewright::verify::fuzz {

/// A snippet's text with other text in the place of names. Members (`x.size`), text in quotes and
/// comments stay as they are.
/// @throws Error as tokenize
std::string with_names(SnippetKind kind, std::string_view text,
                       const std::map<std::string, std::string, std::less<>>& replacements);

/// A body that evaluates the snippet and returns `result`, in which `original()` is its value:
///
///     around(SnippetKind::score_mod, "score * 2", "original() + 1.0")
///
/// An empty text is a snippet that changes nothing.
std::string around(SnippetKind kind, std::string_view text, std::string_view result);

/// What stands in front of such a body's `return`: the declaration of `original`.
std::string as_lambda(SnippetKind kind, std::string_view text, std::string_view name);

}  // namespace tilewright::verify::fuzz
