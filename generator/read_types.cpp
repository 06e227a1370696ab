#include "generator/read_types.hpp"

#include <array>
#include <string_view>
#include <vector>

#include "generator/snippet.hpp"
#include "generator/snippet_words.hpp"

namespace tilewright {
namespace {

using Tokens = std::vector<SnippetToken>;

constexpr std::array<std::string_view, 9> kMakeOneType = {
    "?", "select", "min", "max", "clamp", "auto", "decltype", "typeof", "template"};

// `int d = ...` changes nothing.
bool is_declaration(const Tokens& tokens, std::size_t assignment) {
  return tokens[assignment].text == "=" && assignment >= 2 &&
         is_identifier(tokens[assignment - 1]) && is_identifier(tokens[assignment - 2]) &&
         tokens[assignment - 2].text != "else";
}

bool needs_numbers(const Tokens& tokens) {
  bool changes = false, is_conditional = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (is_one_of(tokens[i].text, kMakeOneType) || opens_lambda(tokens, i)) return true;
    changes |= is_assignment(tokens[i].text) && !is_declaration(tokens, i);
    is_conditional |= is_conditional_operator(tokens[i].text);
  }
  return changes && is_conditional;
}

}  // namespace

bool reads_are_numbers(const Spec& spec) {
  return (!spec.score_mod.empty() &&
          needs_numbers(tokenize(spec.score_mod, SnippetKind::score_mod))) ||
         (!spec.mask_mod.empty() && needs_numbers(tokenize(spec.mask_mod, SnippetKind::mask_mod)));
}

}  // namespace tilewright
