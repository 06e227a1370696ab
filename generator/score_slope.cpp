#include "generator/score_slope.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "generator/score_factors.hpp"
#include "generator/snippet_number.hpp"
#include "generator/snippet_result.hpp"
#include "generator/snippet_words.hpp"

namespace tilewright {
namespace {

using Tokens = std::vector<SnippetToken>;

constexpr std::size_t kTokensOfDifference = 5;  // ( kv_idx - q_idx )

bool is_mentioned_once(const Tokens& tokens, std::string_view name) {
  return std::count_if(tokens.begin(), tokens.end(),
                       [&](const SnippetToken& token) { return token.text == name; }) == 1;
}

// 1 for `(kv_idx - q_idx)` from token i on, -1 for `(q_idx - kv_idx)`, 0 for anything else.
int sign_of_difference(const Tokens& tokens, std::size_t i, std::size_t end) {
  if (i + kTokensOfDifference > end) return 0;
  if (tokens[i].text != "(" || tokens[i + 2].text != "-" || tokens[i + 4].text != ")") return 0;
  const std::string_view left = tokens[i + 1].text, right = tokens[i + 3].text;
  if (left == "kv_idx" && right == "q_idx") return 1;
  return left == "q_idx" && right == "kv_idx" ? -1 : 0;
}

// A word that is an operator, as `or` is.
bool is_operator(const SnippetToken& token) {
  constexpr std::array<std::string_view, 11> words = {
      "and", "or", "xor", "bitand", "bitor", "not", "compl", "not_eq", "and_eq", "or_eq", "xor_eq"};
  return is_one_of(token.text, words);
}

// Whether the tokens are operands with only these operators between them, outside of brackets.
template <typename Operators>
bool has_only(const Tokens& tokens, TokenRange range, const Operators& operators) {
  int depth = 0;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const SnippetToken& token = tokens[i];
    const bool opens = token.text == "(" || token.text == "[";
    const bool closes = token.text == ")" || token.text == "]";
    if (closes) --depth;
    const bool is_sign = token.kind == SnippetToken::Kind::punctuation && !opens && !closes;
    if (depth == 0 && (is_sign || is_operator(token)) && !is_one_of(token.text, operators)) {
      return false;
    }
    if (opens) ++depth;
  }
  return range.begin < range.end;
}

// Errs on the side of true: in C++ `2u * (kv_idx - q_idx)` wraps around where the difference is
// negative.
bool may_be_unsigned(const SnippetToken& token) {
  constexpr std::array<std::string_view, 4> words = {"unsigned", "char8_t", "char16_t", "char32_t"};
  if (is_one_of(token.text, words)) return true;
  if (token.kind == SnippetToken::Kind::character) return true;
  if (token.kind != SnippetToken::Kind::number) return false;
  const NumberLiteral literal = read_number(token.text);
  return !literal.is_floating && !literal.is_int;
}

struct Slope {
  TokenRange tokens;
  int sign;
};

// `slope * (kv_idx - q_idx)` or `(kv_idx - q_idx) * slope`, and nothing else.
std::optional<Slope> slope_of(const Tokens& tokens, TokenRange term) {
  // `(kv_idx - q_idx) * a / b` would have to be computed from the left.
  constexpr std::array<std::string_view, 1> members = {"."};
  constexpr std::array<std::string_view, 4> products = {".", "*", "/", "%"};
  const std::size_t length = term.end - term.begin;
  if (length < kTokensOfDifference + 2) return {};
  if (const int sign = sign_of_difference(tokens, term.begin, term.end)) {
    const std::size_t times = term.begin + kTokensOfDifference;
    const TokenRange slope{times + 1, term.end};
    if (tokens[times].text != "*" || !has_only(tokens, slope, members)) return {};
    return Slope{slope, sign};
  }
  const std::size_t difference = term.end - kTokensOfDifference;
  const TokenRange slope{term.begin, difference - 1};
  const int sign = sign_of_difference(tokens, difference, term.end);
  if (sign == 0 || tokens[difference - 1].text != "*") return {};
  if (!has_only(tokens, slope, products)) return {};
  return Slope{slope, sign};
}

// Of `score + term`, `score - term` or `term + score`.
std::optional<Slope> slope_of_sum(const Tokens& tokens, TokenRange sum) {
  if (sum.end - sum.begin < 2) return {};
  if (tokens[sum.begin].text == "score") {
    const std::string_view sign = tokens[sum.begin + 1].text;
    if (sign != "+" && sign != "-") return {};
    std::optional<Slope> slope = slope_of(tokens, {sum.begin + 2, sum.end});
    if (slope && sign == "-") slope->sign = -slope->sign;
    return slope;
  }
  if (tokens[sum.end - 1].text != "score" || tokens[sum.end - 2].text != "+") return {};
  return slope_of(tokens, {sum.begin, sum.end - 2});
}

}  // namespace

ScoreSlope take_score_slope(const Spec& spec) {
  ScoreSlope taken{.score_mod = spec.score_mod};
  if (spec.score_mod.empty() || !spec.may_reshape_score_mod()) return taken;
  const Snippet snippet = check_snippet(SnippetKind::score_mod, spec.score_mod);
  const Tokens tokens = tokenize(spec.score_mod, SnippetKind::score_mod);
  for (const char* name : {"score", "q_idx", "kv_idx"}) {
    if (!is_mentioned_once(tokens, name)) return taken;
  }
  if (std::any_of(tokens.begin(), tokens.end(), may_be_unsigned)) return taken;
  const std::optional<TokenRange> result = result_of(snippet, tokens);
  if (!result) return taken;
  const std::optional<Slope> slope = slope_of_sum(tokens, *result);
  if (!slope) return taken;
  blank(tokens, {result->begin, slope->tokens.begin}, taken.score_mod);
  blank(tokens, {slope->tokens.end, result->end}, taken.score_mod);
  taken.sign = slope->sign;
  return taken;
}

bool has_score_slope(const Spec& spec) {
  Spec without_factors = spec;
  without_factors.score_mod = take_score_factors(spec).score_mod;
  return take_score_slope(without_factors).sign != 0;
}

}  // namespace tilewright
