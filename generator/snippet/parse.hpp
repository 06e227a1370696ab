#pragma once

#include <span>

#include "../spec/spec.hpp"
#include "snippet.hpp"
#include "tree.hpp"

namespace tilewright::snippet {

/// The tree of a snippet that has passed check_snippet. It understands expressions of numbers,
/// indices, buffers and functions, locals that are declared and assigned, `if`, `for`, `while`,
/// blocks and lambdas of one `return`. Any other text is one opaque statement, which says where
/// it stops being understood: references, arrays, unsigned integers, `switch`, an assignment inside
/// an expression, an assignment to a constant, a declaration that hides a name.
/// @param tokens  of the snippet's text
/// @param spec    declares buffers and scalars
SnippetTree parse(SnippetKind kind, std::span<const SnippetToken> tokens, const Spec& spec);

/// The same of a text. @throws Error as tokenize does
SnippetTree parse(SnippetKind kind, std::string_view text, const Spec& spec);

}  // namespace tilewright::snippet
