#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "complaint.hpp"
#include "lexer.hpp"

namespace tilewright::jinja {

/// A complaint and where in the template's text it points.
struct PlacedComplaint {
  std::uint32_t offset;
  Complaint complaint;
};

/// Tokens with a cursor, and the messages for what was not expected.
class TokenStream {
 public:
  explicit TokenStream(std::string_view text) : tokens_(tokenize(text)) {}

  /// The token under the cursor, or `ahead` of it.
  /// @throws PlacedComplaint where that is what the lexer could not read
  const Token& peek(std::size_t ahead = 0) const;
  Token next();

  bool at(TokenKind kind) const { return peek().kind == kind; }
  bool at_symbol(std::string_view symbol) const;
  bool at_word(std::string_view word) const;
  bool skip_symbol(std::string_view symbol);
  bool skip_word(std::string_view word);

  /// @throws PlacedComplaint where something else stands there
  void expect_symbol(std::string_view symbol, std::string_view hint = {});
  void expect_word(std::string_view word, std::string_view hint = {});
  void expect_end_of(TokenKind tag_end);

  /// "expected X, found Y"
  [[noreturn]] void fail_expected(std::string_view what, std::string_view hint = {}) const;
  [[noreturn]] static void fail(const Token& token, std::string message, std::string hint = {});

 private:
  Tokens tokens_;
  std::size_t cursor_ = 0;
};

}  // namespace tilewright::jinja
