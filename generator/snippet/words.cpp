#include "generator/snippet/words.hpp"

#include <array>
#include <utility>

#include "base/enum_names.hpp"
#include "generator/snippet/names.hpp"

namespace tilewright {

bool is_opening_bracket(std::string_view text) {
  return text == "(" || text == "[" || text == "{";
}

bool is_closing_bracket(std::string_view text) {
  return text == ")" || text == "]" || text == "}";
}

bool is_assignment(std::string_view text) {
  constexpr std::array<std::string_view, 13> signs = {
      "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++", "--", "<<=", ">>="};
  return is_one_of(plain_operator(text), signs);
}

std::string_view plain_operator(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> words = {
      {{"&&", "and"},
       {"||", "or"},
       {"!", "not"},
       {"~", "compl"},
       {"&", "bitand"},
       {"|", "bitor"},
       {"^", "xor"},
       {"!=", "not_eq"},
       {"&=", "and_eq"},
       {"|=", "or_eq"},
       {"^=", "xor_eq"}}};
  return value_in(words, text).value_or(text);
}

bool is_body(std::span<const SnippetToken> tokens) {
  constexpr std::array<std::string_view, 6> starts = {"{", "if", "for", "while", "do", "switch"};
  if (is_one_of(tokens[0].text, starts)) return true;
  int depth = 0;
  for (const SnippetToken& token : tokens) {
    if (is_opening_bracket(token.text)) ++depth;
    if (is_closing_bracket(token.text)) --depth;
    if (token.text == ";" && depth == 0) return true;
  }
  return false;
}

bool is_conditional_operator(std::string_view text) {
  const std::string_view sign = plain_operator(text);
  return sign == "&&" || sign == "||";
}

bool opens_lambda(const std::vector<SnippetToken>& tokens, std::size_t i) {
  if (tokens[i].text != "[") return false;
  if (i == 0) return true;
  const SnippetToken& before = tokens[i - 1];
  const bool is_value = is_identifier(before) && !is_cpp_keyword(before.text);
  return !is_value && before.text != ")" && before.text != "]";
}

}  // namespace tilewright
