#include "generator/snippet/declared_names.hpp"

#include <array>
#include <cstddef>

#include "generator/snippet/words.hpp"

namespace tilewright {
namespace {

// Whether a list of declared names reaches back from the comma before token i: `int d = 1, e`,
// `for (int d = 1, e = 2; ...)`, `auto [d, e]`.
bool is_in_declaration(const SnippetBrackets& snippet, std::size_t i) {
  constexpr std::array ends = {";", "{", "(", "["};
  constexpr std::array heads = {"for", "if", "while", "auto", "&", "&&"};
  while (i > 0 && !is_one_of(snippet.before(i), ends)) i = snippet.partner(i - 1);
  const bool is_list = snippet.before(i) == "(" || snippet.before(i) == "[";
  return is_identifier(snippet.tokens()[i]) &&
         (!is_list || (i > 1 && is_one_of(snippet.text(i - 2), heads)));
}

// Whether token i may be the name of a variable or a parameter that is declared there. Errs on the
// side of true.
bool may_be_declared(const SnippetBrackets& snippet, std::size_t i) {
  constexpr std::array operators = {"return", "case", "else",   "do",    "and",  "or",
                                    "not",    "xor",  "bitand", "bitor", "compl"};
  constexpr std::array types = {"auto", "int",  "float",    "double", "bool", "short",
                                "long", "char", "unsigned", "signed", "const"};
  constexpr std::array inner = {"(", "[", "*", "&", "&&"};
  if (snippet.text(i + 1) == "=") return true;
  if (i == 0) return false;
  const SnippetToken& before = snippet.tokens()[i - 1];
  if (is_identifier(before)) return !is_one_of(before.text, operators);
  if (before.text == ",") return is_in_declaration(snippet, i);
  std::size_t type = i - 1;  // `auto& x`, `int (*x)`, `auto [x, y]`
  while (type > 0 && is_one_of(snippet.text(type), inner)) --type;
  return is_one_of(snippet.text(type), types);
}

}  // namespace

bool may_declare(const SnippetBrackets& snippet, std::string_view name) {
  for (std::size_t i = 0; i < snippet.size(); ++i) {
    const bool is_name = snippet.text(i) == name && snippet.before(i) != ".";
    if (is_name && may_be_declared(snippet, i)) return true;
  }
  return false;
}

}  // namespace tilewright
