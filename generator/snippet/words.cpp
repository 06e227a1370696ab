#include "generator/snippet/words.hpp"

#include <array>

#include "generator/snippet/names.hpp"

namespace tilewright {

bool is_opening_bracket(std::string_view text) {
  return text == "(" || text == "[" || text == "{";
}

bool is_closing_bracket(std::string_view text) {
  return text == ")" || text == "]" || text == "}";
}

bool is_assignment(std::string_view text) {
  constexpr std::array<std::string_view, 16> words = {
      "=",  "+=", "-=", "*=",  "/=",  "%=",     "&=",    "|=",
      "^=", "++", "--", "<<=", ">>=", "and_eq", "or_eq", "xor_eq"};
  return is_one_of(text, words);
}

bool is_conditional_operator(std::string_view text) {
  constexpr std::array<std::string_view, 4> words = {"&&", "||", "and", "or"};
  return is_one_of(text, words);
}

bool opens_lambda(const std::vector<SnippetToken>& tokens, std::size_t i) {
  if (tokens[i].text != "[") return false;
  if (i == 0) return true;
  const SnippetToken& before = tokens[i - 1];
  const bool is_value = is_identifier(before) && !is_cpp_keyword(before.text);
  return !is_value && before.text != ")" && before.text != "]";
}

}  // namespace tilewright
