#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "snippet.hpp"

namespace tilewright {

/// Whether a list of names or words holds this one.
bool is_one_of(std::string_view name, const auto& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

inline bool is_identifier(const SnippetToken& token) {
  return token.kind == SnippetToken::Kind::identifier;
}

/// "(", "[" or "{"
bool is_opening_bracket(std::string_view text);
/// ")", "]" or "}"
bool is_closing_bracket(std::string_view text);

/// What gives a variable another value: `=`, `+=`, `++`, `and_eq` and so on. The `=` of a
/// declaration is one of them.
bool is_assignment(std::string_view text);

/// The sign of an operator that is written as a word: `&&` for `and`. Any other text is unchanged.
std::string_view plain_operator(std::string_view text);

/// Whether the tokens of a snippet are a body with `return`, not an expression.
bool is_body(std::span<const SnippetToken> tokens);

/// `&&` or `||`, whose right side is not always evaluated, by any name.
bool is_conditional_operator(std::string_view text);

/// Whether token i is a `[` that no value stands before: of a lambda, or of a structured binding.
bool opens_lambda(const std::vector<SnippetToken>& tokens, std::size_t i);

}  // namespace tilewright
