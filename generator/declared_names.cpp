#include "generator/declared_names.hpp"

#include <array>
#include <string>
#include <string_view>

#include "generator/snippet_words.hpp"

namespace tilewright {
namespace {

using Tokens = std::vector<SnippetToken>;

constexpr std::array kNames = {"b",     "h",      "h_kv",        "q_idx",        "kv_idx",
                               "q_len", "kv_len", "num_q_heads", "num_kv_heads", "clamp"};

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

// Errs on the side of true: `int b`, `auto& b`, `auto [b, h]`, `int x = 1, b = 2`, `[b](...)`.
bool may_be_declared(const Tokens& tokens, std::size_t i, int depth) {
  const auto text = [&](std::size_t j) { return j < tokens.size() ? tokens[j].text : ""; };
  if (text(i + 1) == "=") return true;
  if (i == 0) return false;
  if (!may_precede_a_use(tokens[i - 1])) return true;
  const std::string_view before = text(i - 1);
  if (before == "," && depth == 0) return true;
  if (before != "&" && before != "*" && before != "&&" && before != "[") return false;
  constexpr std::array types = {"auto", "int",  "float",    "double", "bool", "short",
                                "long", "char", "unsigned", "signed", "const"};
  return i >= 2 && is_one_of(tokens[i - 2].text, types);
}

}  // namespace

bool may_declare_a_name(const Tokens& tokens, const Spec& spec) {
  int depth = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view text = tokens[i].text;
    if (text == "(" || text == "[") ++depth;
    if (text == ")" || text == "]") --depth;
    if (binds_or_captures(tokens, i)) return true;
    const bool is_ours = is_one_of(text, kNames) || spec.buffers.contains(std::string(text));
    if (is_ours && may_be_declared(tokens, i, depth)) return true;
  }
  return false;
}

}  // namespace tilewright
