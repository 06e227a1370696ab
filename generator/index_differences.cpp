#include "generator/index_differences.hpp"

#include <array>
#include <string_view>
#include <vector>

#include "generator/snippet.hpp"
#include "generator/snippet_words.hpp"

namespace tilewright {
namespace {

using Tokens = std::vector<SnippetToken>;

bool is_difference(const Tokens& tokens, std::size_t i) {
  if (i + 2 >= tokens.size() || tokens[i + 1].text != "-") return false;
  const std::string_view left = tokens[i].text, right = tokens[i + 2].text;
  return (left == "kv_idx" && right == "q_idx") || (left == "q_idx" && right == "kv_idx");
}

bool may_deduce_types(const Tokens& tokens) {
  constexpr std::array<std::string_view, 4> words = {"auto", "decltype", "typeof", "template"};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (is_one_of(tokens[i].text, words)) return true;
    if (opens_lambda(tokens, i)) return true;
  }
  return false;
}

}  // namespace

bool takes_index_difference(const Spec& spec) {
  if (spec.score_mod.empty()) return false;
  const Tokens tokens = tokenize(spec.score_mod, SnippetKind::score_mod);
  if (may_deduce_types(tokens)) return false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (is_difference(tokens, i)) return true;
  }
  return false;
}

}  // namespace tilewright
