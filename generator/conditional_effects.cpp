#include "generator/conditional_effects.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "generator/snippet_names.hpp"
#include "generator/snippet_words.hpp"

namespace tilewright {
namespace {

using Tokens = std::vector<SnippetToken>;

class EffectFinder {
 public:
  explicit EffectFinder(const Tokens& tokens) : tokens_(tokens), body_begin_(tokens.size()) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (!body_begin_[i] && opens_lambda(tokens_, i)) mark_body(i);
    }
  }

  bool run() const {
    bool has_operator = false;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (!is_conditional_operator(text(i))) continue;
      has_operator = true;
      if (operand_has_effect(i + 1)) return true;
    }
    // Any of the lambdas may be called there.
    return has_operator && lambda_has_effect();
  }

 private:
  std::string_view text(std::size_t i) const { return i < tokens_.size() ? tokens_[i].text : ""; }

  // Of the lambda, or structured binding, of the `[` of token i.
  void mark_body(std::size_t i) {
    int depth = 0;
    std::size_t begin = i;
    for (; begin < tokens_.size(); ++begin) {
      if (text(begin) == "{" && depth == 0) break;
      if (is_opening_bracket(text(begin))) ++depth;
      if (is_closing_bracket(text(begin))) --depth;
      if (depth < 0 || (depth == 0 && text(begin) == ";")) return;
    }
    depth = 0;
    for (std::size_t j = begin; j < tokens_.size(); ++j) {
      body_begin_[j] = begin;
      if (is_opening_bracket(text(j))) ++depth;
      if (is_closing_bracket(text(j)) && --depth == 0) return;
    }
  }

  // `int n = 3`, `[=]`
  bool is_initializer(std::size_t i) const {
    if (text(i) != "=" || i == 0) return false;
    if (text(i - 1) == "[") return true;
    return i > 1 && is_identifier(tokens_[i - 1]) && is_type(i - 2);
  }

  // Whether a name behind this word is declared there.
  bool is_type(std::size_t i) const {
    constexpr std::array<std::string_view, 11> no_types = {
        "return", "else", "do", "case", "and", "or", "not", "xor", "bitand", "bitor", "compl"};
    return is_identifier(tokens_[i]) && !is_one_of(text(i), no_types);
  }

  // Whether what token i changes is a variable that a lambda's body has declared: mentioned there
  // for the first time, behind its type.
  bool is_of_lambda(std::size_t i) const {
    if (!body_begin_[i]) return false;
    const bool is_step = text(i) == "++" || text(i) == "--";
    const bool is_in_front = is_step && i + 1 < tokens_.size() && is_identifier(tokens_[i + 1]);
    const std::size_t at = is_in_front ? i + 1 : i - 1;
    if (!is_identifier(tokens_[at]) || is_cpp_keyword(text(at)) || text(at - 1) == "*")
      return false;
    constexpr std::array<std::string_view, 3> members = {"[", ".", "->"};
    if (is_in_front && is_one_of(text(i + 2), members)) return false;
    const auto is_same = [&](const SnippetToken& token) { return token.text == text(at); };
    const auto first = std::find_if(tokens_.begin(), tokens_.end(), is_same);
    const auto declared = static_cast<std::size_t>(first - tokens_.begin());
    return declared > *body_begin_[i] && declared < at && is_type(declared - 1);
  }

  bool has_effect(std::size_t i) const {
    return is_assignment(text(i)) && !is_initializer(i) && !is_of_lambda(i);
  }

  // Up to the `;`, the comma or the bracket behind it.
  bool operand_has_effect(std::size_t i) const {
    int depth = 0;
    for (; i < tokens_.size(); ++i) {
      if (depth == 0 && (is_closing_bracket(text(i)) || text(i) == ";" || text(i) == ","))
        return false;
      if (is_opening_bracket(text(i))) ++depth;
      if (is_closing_bracket(text(i))) --depth;
      if (has_effect(i)) return true;
    }
    return false;
  }

  bool lambda_has_effect() const {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (body_begin_[i] && has_effect(i)) return true;
    }
    return false;
  }

  const Tokens& tokens_;
  // Of each token, the `{` of the outermost lambda around it.
  std::vector<std::optional<std::size_t>> body_begin_;
};

}  // namespace

bool has_conditional_effects(SnippetKind kind, std::string_view text) {
  const Tokens tokens = tokenize(text, kind);
  return EffectFinder(tokens).run();
}

}  // namespace tilewright
