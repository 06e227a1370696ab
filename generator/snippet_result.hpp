#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "snippet.hpp"

namespace tilewright {

/// Tokens [begin, end).
struct TokenRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// The tokens of a snippet's result: all of an expression, or what the only `return` of a body
/// gives. None where there are conditions, loops or lambdas.
std::optional<TokenRange> result_of(const Snippet& snippet,
                                    const std::vector<SnippetToken>& tokens);

/// Puts blanks in the place of tokens.
void blank(const std::vector<SnippetToken>& tokens, TokenRange range, std::string& text);

}  // namespace tilewright
