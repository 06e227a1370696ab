#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "generator/snippet/snippet.hpp"

namespace tilewright::testing {

/// What replaces a token: brackets, operators, numbers, names and words that break things.
inline constexpr auto kMutationPool = std::to_array<std::string_view>(
    {"(",      ")",       "[",   "]",       "{",       "}",   ";",    ",",      "+",
     "-",      "*",       "/",   "%",       "<",       ">",   "<=",   ">>",     "==",
     "=",      "!",       "&&",  "||",      "&",       "?",   ":",    "::",     ".",
     "->",     "#",       "\"",  "'",       "//",      "/*",  "\\",   "0",      "1",
     "-1",     "0.5",     "1e3", "0x1p-4",  "1'000",   "08",  "1e",   "score",  "q_idx",
     "h",      "unknown", "int", "float",   "return",  "if",  "for",  "while",  "auto",
     "static", "goto",    "asm", "this",    "tw_real", "__x", "bool", "sizeof", "\"text\"",
     "'c'",    "true",    "@",   "\xC3\xA9"});

/// One change of one token: deleted, doubled, swapped with its neighbour, or replaced by one of the
/// pool. The same snippet and seed give the same mutation.
inline std::string mutate_snippet(std::string_view snippet, SnippetKind kind, std::uint64_t seed) {
  const std::vector<SnippetToken> tokens = tokenize(snippet, kind);
  std::mt19937_64 random(seed);
  const auto below = [&random](std::size_t count) { return random() % count; };
  const std::size_t chosen = below(tokens.size());
  const SnippetToken& token = tokens[chosen];
  const auto text_between = [&](std::size_t from, std::size_t to) {
    return std::string(snippet.substr(from, to - from));
  };
  const std::size_t end = token.offset + token.text.size();
  const std::string before = text_between(0, token.offset);
  const std::string after = text_between(end, snippet.size());
  const std::string text(token.text);
  switch (below(6)) {
    case 0:
      return before + after;
    case 1:
      return before + text + ' ' + text + after;
    case 2: {
      if (chosen + 1 == tokens.size()) return before + after;
      const SnippetToken& next = tokens[chosen + 1];
      const std::size_t next_end = next.offset + next.text.size();
      return before + std::string(next.text) + ' ' + text_between(end, next.offset) + text +
             text_between(next_end, snippet.size());
    }
    default:
      return before + ' ' + std::string(kMutationPool[below(kMutationPool.size())]) + ' ' + after;
  }
}

}  // namespace tilewright::testing
