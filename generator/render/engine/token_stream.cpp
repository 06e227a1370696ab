#include "generator/render/engine/token_stream.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tilewright::jinja {
namespace {

std::string describe(const Token& token) {
  if (token.kind == TokenKind::end) return "the end of the template";
  if (token.kind == TokenKind::text) return "text";
  constexpr std::size_t kLongest = 40;
  if (token.text.size() > kLongest) return fmt::format("`{}...`", token.text.substr(0, kLongest));
  return fmt::format("`{}`", token.text);
}

// What people who think in C++ or Python write.
std::string hint_for(const Token& found, bool in_print) {
  if (found.text == "=") return "`=` assigns, in {% set %} only; `==` compares";
  if (in_print && (found.text == "," || found.text == "}" || found.text == ";")) {
    return "for C++ braces put a space between them: { {";
  }
  return {};
}

}  // namespace

const Token& TokenStream::peek(std::size_t ahead) const {
  const Token& token = tokens_.list[std::min(cursor_ + ahead, tokens_.list.size() - 1)];
  if (token.kind == TokenKind::error) throw PlacedComplaint{token.offset, tokens_.error};
  return token;
}

Token TokenStream::next() {
  const Token token = peek();
  if (cursor_ + 1 < tokens_.list.size()) ++cursor_;
  return token;
}

bool TokenStream::at(std::string_view text) const {
  return (at(TokenKind::symbol) || at(TokenKind::name)) && peek().text == text;
}

bool TokenStream::skip(std::string_view text) {
  const bool found = at(text);
  if (found) next();
  return found;
}

void TokenStream::expect(std::string_view text, std::string_view hint) {
  if (!skip(text)) fail_expected(fmt::format("`{}`", text), hint);
}

void TokenStream::expect_end_of(TokenKind tag_end) {
  const bool in_print = tag_end == TokenKind::variable_end;
  if (!at(tag_end)) fail_expected(in_print ? "`}}`" : "`%}`", hint_for(peek(), in_print));
  next();
}

void TokenStream::fail_expected(std::string_view what, std::string_view hint) const {
  fail(peek(), {fmt::format("expected {}, found {}", what, describe(peek())), std::string(hint)});
}

void TokenStream::fail(const Token& token, Complaint complaint) {
  throw PlacedComplaint{token.offset, std::move(complaint)};
}

}  // namespace tilewright::jinja
