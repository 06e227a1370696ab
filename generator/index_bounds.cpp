#include "generator/index_bounds.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "generator/snippet.hpp"
#include "generator/snippet_words.hpp"

namespace tilewright {
namespace {

using Tokens = std::vector<SnippetToken>;

// By anything but a number that stands there or comes with the call, which does not depend on an
// index.
bool divides_by_unknown(const Spec& spec, const Tokens& tokens, std::size_t i) {
  constexpr std::array<std::string_view, 4> words = {"/", "%", "/=", "%="};
  if (!is_one_of(tokens[i].text, words)) return false;
  if (i + 1 == tokens.size()) return true;
  const SnippetToken& divisor = tokens[i + 1];
  return divisor.kind != SnippetToken::Kind::number &&
         spec.scalars.count(std::string(divisor.text)) == 0;
}

// floor_div(x, 2) and floor_mod(x, 2) divide by a number.
bool floor_divides_by_unknown(const Spec& spec, const Tokens& tokens, std::size_t i) {
  if (tokens[i].text != "floor_div" && tokens[i].text != "floor_mod") return false;
  int depth = 0;
  for (std::size_t j = i + 1; j < tokens.size(); ++j) {
    if (is_opening_bracket(tokens[j].text)) ++depth;
    if (!is_closing_bracket(tokens[j].text) || --depth > 0) continue;
    const SnippetToken& divisor = tokens[j - 1];
    const bool is_known = divisor.kind == SnippetToken::Kind::number ||
                          spec.scalars.count(std::string(divisor.text)) != 0;
    return !is_known || tokens[j - 2].text != ",";
  }
  return true;
}

// A lambda is none, but may hide anything.
bool opens_array(const Spec& spec, const Tokens& tokens, std::size_t i) {
  if (tokens[i].text != "[") return false;
  return i == 0 || spec.buffers.count(std::string(tokens[i - 1].text)) == 0;
}

bool may_do_harm(const Spec& spec, const std::string& text, SnippetKind kind) {
  if (has_loop(kind, text)) return true;
  const Tokens tokens = tokenize(text, kind);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (divides_by_unknown(spec, tokens, i) || floor_divides_by_unknown(spec, tokens, i) ||
        opens_array(spec, tokens, i))
      return true;
  }
  return false;
}

}  // namespace

bool needs_bounded_indices(const Spec& spec) {
  const bool trusts = std::any_of(spec.buffers.begin(), spec.buffers.end(), [](const auto& named) {
    return named.second.bounds == Bounds::trusted;
  });
  return trusts || may_do_harm(spec, spec.score_mod, SnippetKind::score_mod) ||
         may_do_harm(spec, spec.mask_mod, SnippetKind::mask_mod);
}

}  // namespace tilewright
