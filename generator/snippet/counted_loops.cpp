#include "generator/snippet/counted_loops.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "generator/snippet/brackets.hpp"

namespace tilewright {
namespace {

// Whether a declaration begins at a token: `int i = ...`, not `int(x) > 2`.
bool declares(const SnippetBrackets& snippet, std::size_t i) {
  constexpr std::string_view kFirst[] = {"const",  "constexpr", "auto", "int",     "float",
                                         "double", "bool",      "long", "unsigned"};
  const bool is_type =
      std::find(std::begin(kFirst), std::end(kFirst), snippet.text(i)) != std::end(kFirst);
  return is_type && snippet.text(i + 1) != "(";
}

}  // namespace

std::vector<Replacement> counted_loops(const Snippet& snippet) {
  const SnippetBrackets brackets(snippet.kind, snippet.text, tokenize(snippet.text, snippet.kind));
  std::vector<Replacement> edits;
  const auto insert = [&](std::size_t at, const char* text) { edits.push_back({at, at, text}); };
  for (std::size_t i = 0; i < brackets.size(); ++i) {
    const bool is_for = brackets.text(i) == "for";
    if ((!is_for && brackets.text(i) != "while") || brackets.text(i + 1) != "(") continue;
    const std::size_t open = i + 1;
    const std::size_t before_end = brackets.tokens()[brackets.partner(open)].offset;
    if (is_for) {
      // The `else` keeps an `else` of the snippet with the snippet's `if`.
      insert(before_end + 1, " if (!tw_round()) {} else ");
    } else if (!declares(brackets, open + 1)) {
      insert(brackets.tokens()[open].offset + 1, "tw_round() && (");
      insert(before_end, ")");
    }
  }
  return edits;
}

}  // namespace tilewright
