#include "generator/snippet/brackets.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "generator/snippet/names.hpp"
#include "generator/snippet/words.hpp"

namespace tilewright {

SnippetBrackets::SnippetBrackets(SnippetKind kind, std::string_view text,
                                 std::vector<SnippetToken> tokens)
    : kind_(kind), text_(text), tokens_(std::move(tokens)) {
  match();
}

void SnippetBrackets::match() {
  partners_.resize(tokens_.size());
  std::vector<std::size_t> open;
  const auto pair = [&](std::size_t i) {
    partners_[open.back()] = i;
    partners_[i] = open.back();
    open.pop_back();
  };
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    partners_[i] = i;
    if (tokens_[i].kind != SnippetToken::Kind::punctuation) continue;
    const bool after_introducer = i > 0 && text(i - 1) == "]" && partners_[i - 1] != i - 1 &&
                                  opens_lambda(tokens_, partners_[i - 1]);
    const bool is_angle = text(i) == "<" && (before(i) == "static_cast" || after_introducer);
    if (is_opening_bracket(text(i)) || is_angle) open.push_back(i);
    if (open.empty()) continue;
    const bool ends_angle = text(i) == ">" && text(open.back()) == "<";
    if (is_closing_bracket(text(i)) || ends_angle) pair(i);
  }
}

std::vector<SnippetBrackets::Range> SnippetBrackets::levels() const {
  std::vector<Range> ranges = {{0, size()}};
  for (std::size_t i = 0; i < size(); ++i) {
    if (opens(i) && text(i) != "<") ranges.push_back(inside(i));
  }
  return ranges;
}

std::string SnippetBrackets::excerpt(Range range) const {
  std::string result;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const SnippetToken& token = tokens_[i];
    if (i > range.begin) {
      const SnippetToken& last = tokens_[i - 1];
      if (token.offset > last.offset + last.text.size()) result += ' ';
    }
    result += token.text;
  }
  return result;
}

bool SnippetBrackets::ends_value(std::size_t i) const {
  const SnippetToken& token = tokens_[i];
  if (is_identifier(token)) {
    return !is_cpp_keyword(token.text) || token.text == "true" || token.text == "false";
  }
  return token.kind != SnippetToken::Kind::punctuation ||
         (closes(i) && is_closing_bracket(token.text));
}

SnippetBrackets::Range SnippetBrackets::operand_before(std::size_t i) const {
  std::size_t begin = i;
  while (begin > 0) {
    const std::size_t last = begin - 1;
    if (closes(last)) {
      begin = partners_[last];
      continue;
    }
    if (!ends_value(last) || (begin < i && !opens(begin))) break;
    begin = last;
    if (begin < 2 || text(begin - 1) != ".") break;
    --begin;  // x.size(0)
  }
  return {begin, i};
}

SnippetBrackets::Range SnippetBrackets::operand_from(std::size_t i) const {
  std::size_t end = i;
  while (text(end) == "-" || text(end) == "+" || text(end) == "!") ++end;
  if (end < size()) end = next(end);
  while (end < size() && ((opens(end) && text(end) != "{") || text(end) == ".")) {
    end = text(end) == "." ? std::min(end + 2, size()) : next(end);
  }
  return {i, end};
}

void SnippetBrackets::fail(std::size_t i, std::string message, std::string hint) const {
  throw snippet_error(kind_, text_, tokens_[i].offset, std::move(message), std::move(hint));
}

bool is_comparison(std::string_view text) {
  constexpr std::array<std::string_view, 8> kComparisons = {
      "<", "<=", ">", ">=", "<=>", "==", "!=", "not_eq"};
  return is_one_of(text, kComparisons);
}

bool binds_weaker_than_comparison(std::string_view text) {
  constexpr std::array<std::string_view, 27> kWeaker = {
      "&&",  "||",  ",",   ";",  "?",   ":",      "&",     "|",      "^",
      "=",   "+=",  "-=",  "*=", "/=",  "%=",     "&=",    "|=",     "^=",
      "<<=", ">>=", "and", "or", "xor", "bitand", "bitor", "and_eq", "or_eq"};
  return is_one_of(text, kWeaker) || text == "xor_eq";
}

}  // namespace tilewright
