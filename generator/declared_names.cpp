#include "generator/declared_names.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "generator/snippet_words.hpp"

namespace tilewright {
namespace {

using Tokens = std::vector<SnippetToken>;

// Words that may stand before a variable in an expression; any other one declares it.
bool may_precede_a_use(const SnippetToken& token) {
  constexpr std::array words = {"return", "case", "else",   "do",    "and",  "or",
                                "not",    "xor",  "bitand", "bitor", "compl"};
  return !is_identifier(token) || is_one_of(token.text, words);
}

// The `[` of a structured binding, or of a lambda that lists what it captures: its body could not
// see what takes the place of a read.
bool binds_or_captures(const Tokens& tokens, std::size_t i) {
  if (tokens[i].text != "[") return false;
  if (i > 0) {
    const SnippetToken& before = tokens[i - 1];
    if (before.text == "auto" || before.text == "&" || before.text == "&&") return true;
    const bool is_value = is_identifier(before) && !may_precede_a_use(before);
    if (is_value || before.text == ")" || before.text == "]") return false;
  }
  if (i + 2 >= tokens.size() || tokens[i + 1].text == "]") return false;
  const bool captures_all = tokens[i + 1].text == "&" || tokens[i + 1].text == "=";
  return !captures_all || tokens[i + 2].text != "]";
}

// The brackets that are open at a token.
class OpenBrackets {
 public:
  void pass(const Tokens& tokens, std::size_t i) {
    constexpr std::array heads = {"for", "if", "while", "switch", "constexpr"};
    const std::string_view text = tokens[i].text;
    const bool is_head = text == "(" && i > 0 && is_one_of(tokens[i - 1].text, heads);
    if (text == "(" || text == "[") kinds_.push_back(is_head ? Kind::head : Kind::list);
    if (text == "{") kinds_.push_back(Kind::block);
    if ((text == ")" || text == "]" || text == "}") && !kinds_.empty()) kinds_.pop_back();
  }

  bool is_in_block() const { return kinds_.empty() || kinds_.back() == Kind::block; }
  bool is_in_head() const { return !kinds_.empty() && kinds_.back() == Kind::head; }

 private:
  enum class Kind { list, block, head };  // head: of `for (...)`
  std::vector<Kind> kinds_;
};

// Whether a statement, or the first part of a `for (...)`, begins at token i.
bool begins_statement(const Tokens& tokens, std::size_t i) {
  constexpr std::array before = {";", "{", "}", ")", "else", "do", "const", "constexpr"};
  if (i == 0 || is_one_of(tokens[i - 1].text, before)) return true;
  if (tokens[i - 1].text == ":" && i > 1) {
    return tokens[i - 2].text == "default" || (i > 2 && tokens[i - 3].text == "case");
  }
  constexpr std::array heads = {"for", "if", "while", "switch", "constexpr"};
  return tokens[i - 1].text == "(" && i > 1 && is_one_of(tokens[i - 2].text, heads);
}

// `int (h) = 2`, `int (h){2}`, `int ((h))`, `int (*h)`, around the name of token i.
bool may_be_declared_in_brackets(const Tokens& tokens, std::size_t i) {
  constexpr std::array inner = {"(", "*", "&", "&&"};
  std::size_t type = i;
  while (type > 0 && is_one_of(tokens[type - 1].text, inner)) --type;
  if (type == 0 || type == i || tokens[type].text != "(") return false;
  std::size_t end = i + 1;
  while (end < tokens.size() && tokens[end].text == ")") ++end;
  if (end == i + 1 || end == tokens.size()) return false;
  if (tokens[end].text == "=") return true;
  constexpr std::array behind = {"(", "{", "[", ";", ","};
  if (!is_one_of(tokens[end].text, behind)) return false;
  constexpr std::array no_types = {"if", "while", "switch", "for", "return"};
  const SnippetToken& name = tokens[type - 1];
  return is_identifier(name) && !is_one_of(name.text, no_types) &&
         begins_statement(tokens, type - 1);
}

// Errs on the side of true: `int b`, `auto& b`, `auto [b, h]`, `int x = 1, b = 2`, `[b](...)`,
// `for (int i = 0, b(1); ...)`.
bool may_be_declared(const Tokens& tokens, std::size_t i, const OpenBrackets& open) {
  const auto text = [&](std::size_t j) { return j < tokens.size() ? tokens[j].text : ""; };
  if (text(i + 1) == "=") return true;
  if (i == 0) return false;
  if (!may_precede_a_use(tokens[i - 1])) return true;
  const std::string_view before = text(i - 1);
  if (before == "," && open.is_in_block()) return true;
  constexpr std::array behind = {"(", "{", "=", ";", ","};
  if (before == "," && open.is_in_head() && is_one_of(text(i + 1), behind)) return true;
  if (may_be_declared_in_brackets(tokens, i)) return true;
  if (before != "&" && before != "*" && before != "&&" && before != "[") return false;
  constexpr std::array types = {"auto", "int",  "float",    "double", "bool", "short",
                                "long", "char", "unsigned", "signed", "const"};
  return i >= 2 && is_one_of(tokens[i - 2].text, types);
}

}  // namespace

bool may_declare(const Tokens& tokens, std::string_view name) {
  OpenBrackets open;
  std::size_t list_end = 0;  // of a structured binding, or of what a lambda captures
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    open.pass(tokens, i);
    if (binds_or_captures(tokens, i)) {
      while (list_end < tokens.size() && (list_end <= i || tokens[list_end].text != "]"))
        ++list_end;
    }
    if (tokens[i].text != name || (i > 0 && tokens[i - 1].text == ".")) continue;
    if (i < list_end || may_be_declared(tokens, i, open)) return true;
  }
  return false;
}

}  // namespace tilewright
