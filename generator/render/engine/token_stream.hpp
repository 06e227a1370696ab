#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "complaint.hpp"
#include "lexer.hpp"

namespace tilewright::jinja {

/// Tokens with a cursor, and the messages for what was not expected.
class TokenStream {
 public:
  explicit TokenStream(std::string_view text) : tokens_(tokenize(text)) {}

  /// The token under the cursor, or `ahead` of it.
  /// @throws PlacedComplaint where that is what the lexer could not read
  const Token& peek(std::size_t ahead = 0) const;
  Token next();

  bool at(TokenKind kind) const { return peek().kind == kind; }
  /// Whether an operator, a bracket or a name of that text comes next.
  bool at(std::string_view text) const;
  bool skip(std::string_view text);

  /// @throws PlacedComplaint if something else comes next
  void expect(std::string_view text, std::string_view hint = {});
  void expect_end_of(TokenKind tag_end);

  /// "expected X, found Y"
  [[noreturn]] void fail_expected(std::string_view what, std::string_view hint = {}) const;
  [[noreturn]] static void fail(const Token& token, Complaint complaint);

 private:
  Tokens tokens_;
  std::size_t cursor_ = 0;
};

}  // namespace tilewright::jinja
