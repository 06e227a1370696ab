#include "generator/score_factors.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "generator/snippet_names.hpp"
#include "generator/snippet_result.hpp"
#include "generator/snippet_words.hpp"

namespace tilewright {
namespace {

using Tokens = std::vector<SnippetToken>;

// Between them products stay far from float's limits.
constexpr double kLeast = 0x1p-20;
constexpr double kGreatest = 0x1p20;

struct Factor {
  double value;
  TokenRange tokens;  // the number and its operator
};

// 50, 0.5, .5f, 1e-2: plain decimal numbers.
std::optional<double> value_of(const SnippetToken& token) {
  if (token.kind != SnippetToken::Kind::number) return {};
  std::string_view text = token.text;
  if (text.starts_with('0') && !text.starts_with("0.")) return {};  // octal, or hexadecimal
  if (text.ends_with('f')) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  if (value < kLeast || value > kGreatest) return {};
  return value;
}

// `N *` in front of token i.
std::optional<Factor> factor_before(const Tokens& tokens, std::size_t i) {
  if (i < 2 || tokens[i - 1].text != "*") return {};
  const std::optional<double> value = value_of(tokens[i - 2]);
  if (!value) return {};
  return Factor{*value, {i - 2, i}};
}

// `* N` or `/ N` from token i on.
std::optional<Factor> factor_behind(const Tokens& tokens, std::size_t i) {
  if (i + 1 >= tokens.size()) return {};
  const bool divides = tokens[i].text == "/";
  if (!divides && tokens[i].text != "*") return {};
  const std::optional<double> value = value_of(tokens[i + 1]);
  if (!value) return {};
  return Factor{divides ? 1 / *value : *value, {i, i + 2}};
}

// Whether token i is the first of an operand that nothing stands before which binds as tightly as
// a product, or as a sum.
bool begins_sum(const Tokens& tokens, std::size_t i) {
  constexpr std::array<std::string_view, 17> before = {
      "(", ",", "=",  "return", "?",  ":",  "<",  ">", "{",
      ";", "}", "<=", ">=",     "==", "!=", "&&", "||"};
  return i == 0 || is_one_of(tokens[i - 1].text, before);
}

bool is_value_name(const SnippetToken& token) {
  return is_identifier(token) && !is_cpp_keyword(token.text);
}

// Whether the `)` of token i closes a call or a value: what follows `(int)` is cast.
bool closes_value(const Tokens& tokens, std::size_t i) {
  int depth = 0;
  bool has_number = false;
  for (std::size_t j = i + 1; j-- > 0;) {
    if (tokens[j].text == "decltype" || tokens[j].text == "typeof") return false;
    has_number |= tokens[j].kind == SnippetToken::Kind::number;
    if (tokens[j].text == ")") ++depth;
    if (tokens[j].text != "(" || --depth > 0) continue;
    return has_number || (j > 0 && (is_value_name(tokens[j - 1]) || tokens[j - 1].text == "]"));
  }
  return false;
}

// Whether a product may begin at token i: nothing in front of it binds as tightly. `a / -score * 2`
// divides by -score alone.
bool begins_product(const Tokens& tokens, std::size_t i) {
  if (begins_sum(tokens, i)) return true;
  const std::string_view sign = tokens[i - 1].text;
  if (sign != "+" && sign != "-") return false;
  if (begins_sum(tokens, i - 1)) return true;
  const SnippetToken& before = tokens[i - 2];
  if (before.text == ")") return closes_value(tokens, i - 2);
  const bool is_number = before.kind == SnippetToken::Kind::number;
  return is_number || is_value_name(before) || before.text == "]";
}

std::optional<Factor> factor_of_score(const Tokens& tokens) {
  const auto is_score = [](const SnippetToken& token) { return token.text == "score"; };
  if (std::count_if(tokens.begin(), tokens.end(), is_score) != 1) return {};
  const auto found = std::find_if(tokens.begin(), tokens.end(), is_score);
  const auto i = static_cast<std::size_t>(found - tokens.begin());
  if (begins_product(tokens, i)) return factor_behind(tokens, i + 1);
  const std::optional<Factor> factor = factor_before(tokens, i);
  return factor && begins_product(tokens, factor->tokens.begin) ? factor : std::nullopt;
}

// Behind `f(...)` from token i on, f being a function whose value is a real number.
std::optional<std::size_t> end_of_call(const Tokens& tokens, std::size_t i, std::size_t end) {
  constexpr std::array<std::string_view, 12> functions = {"tanh", "tanhf", "exp",  "expf",
                                                          "log",  "logf",  "sqrt", "sqrtf",
                                                          "fabs", "fabsf", "sin",  "cos"};
  if (i + 1 >= end || !is_one_of(tokens[i].text, functions) || tokens[i + 1].text != "(") return {};
  int depth = 0;
  for (std::size_t j = i + 1; j < end; ++j) {
    if (tokens[j].text == "(") ++depth;
    if (tokens[j].text == ")" && --depth == 0) return j + 1;
  }
  return {};
}

// A result that is the value of a function, maybe beside a number.
struct ResultOfCall {
  std::string_view function;
  std::optional<Factor> factor;
};

std::optional<ResultOfCall> read_result(const Snippet& snippet, const Tokens& tokens) {
  const std::optional<TokenRange> result = result_of(snippet, tokens);
  if (!result) return {};
  const auto [begin, end] = *result;
  if (const auto behind = end_of_call(tokens, begin, end)) {
    if (*behind == end) return ResultOfCall{tokens[begin].text, {}};
    const std::optional<Factor> factor = factor_behind(tokens, *behind);
    if (!factor || factor->tokens.end != end) return {};
    return ResultOfCall{tokens[begin].text, factor};
  }
  if (end_of_call(tokens, begin + 2, end) != end) return {};
  const std::optional<Factor> factor = factor_before(tokens, begin + 2);
  if (!factor || factor->tokens.begin != begin) return {};
  return ResultOfCall{tokens[begin + 2].text, factor};
}

}  // namespace

ScoreFactors take_score_factors(const Spec& spec) {
  ScoreFactors factors{.score_mod = spec.score_mod};
  if (spec.score_mod.empty() || !spec.may_reshape_score_mod()) return factors;
  const Snippet snippet = check_snippet(SnippetKind::score_mod, spec.score_mod);
  const Tokens tokens = tokenize(spec.score_mod, SnippetKind::score_mod);
  if (const std::optional<Factor> factor = factor_of_score(tokens)) {
    factors.of_score = factor->value;
    blank(tokens, factor->tokens, factors.score_mod);
  }
  if (const std::optional<ResultOfCall> result = read_result(snippet, tokens)) {
    constexpr std::array<std::string_view, 4> bounded = {"tanh", "tanhf", "sin", "cos"};
    factors.is_bounded = is_one_of(result->function, bounded);
    if (result->factor) {
      factors.of_result = result->factor->value;
      blank(tokens, result->factor->tokens, factors.score_mod);
    }
  }
  return factors;
}

}  // namespace tilewright
