#pragma once

#include <map>
#include <string>
#include <string_view>

#include "../generator/snippet/snippet.hpp"

namespace tilewright::verify::fuzz {

/// `stem`, or `stem` and a number: a name that neither the spec nor its snippets mention.
/// @throws Error as tokenize
std::string unused_name(const Spec& spec, std::string_view stem);

/// Indices and lengths of a snippet, each with the expression that it is to stand for.
using Arguments = std::map<std::string, std::string, std::less<>>;

/// A body that evaluates the snippet with other arguments:
///
///     with_arguments(SnippetKind::mask_mod, "q_idx >= kv_idx", {{"q_idx", "q_idx - 7"}})
///
/// The text itself stays as it is, so what it declares under such a name is its own. One that
/// mentions none of the names is returned unchanged.
/// @throws Error as check_snippet
std::string with_arguments(SnippetKind kind, std::string_view text, const Arguments& arguments);

/// A body that evaluates the snippet and returns `result`, in which the lambda `name` is its value:
///
///     around(SnippetKind::score_mod, "score * 2", "original", "original() + 1.0")
///
/// An empty text is a snippet that changes nothing.
std::string around(SnippetKind kind, std::string_view text, std::string_view name,
                   std::string_view result);

/// What stands before such a body's `return`: the declaration of the lambda.
std::string as_lambda(SnippetKind kind, std::string_view text, std::string_view name);

}  // namespace tilewright::verify::fuzz
