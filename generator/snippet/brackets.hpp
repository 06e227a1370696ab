#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "snippet.hpp"

namespace tilewright {

/// The tokens of a snippet whose brackets match, with the partner of each bracket. The `<` and `>`
/// of `static_cast<int>` and of a lambda's template parameters count as brackets too.
class SnippetBrackets {
 public:
  /// @param text must outlive the object
  SnippetBrackets(SnippetKind kind, std::string_view text, std::vector<SnippetToken> tokens);

  SnippetKind kind() const { return kind_; }
  std::string_view source() const { return text_; }
  const std::vector<SnippetToken>& tokens() const { return tokens_; }
  std::size_t size() const { return tokens_.size(); }

  /// The text of token i; empty outside 0..size().
  std::string_view text(std::size_t i) const { return i < tokens_.size() ? tokens_[i].text : ""; }
  /// The text of the token before i; empty for the first.
  std::string_view before(std::size_t i) const { return i == 0 ? "" : text(i - 1); }

  /// The other bracket of token i; i for any other token.
  std::size_t partner(std::size_t i) const { return partners_[i]; }
  bool opens(std::size_t i) const { return partners_[i] > i; }
  bool closes(std::size_t i) const { return partners_[i] < i; }
  /// The token after i on the same level: after the partner of an opening bracket.
  std::size_t next(std::size_t i) const { return partners_[i] > i ? partners_[i] + 1 : i + 1; }

  /// A range of tokens: what stands between two brackets, or everything.
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  /// Everything, then what stands inside each pair of brackets.
  std::vector<Range> levels() const;
  Range inside(std::size_t opening) const { return {opening + 1, partners_[opening]}; }

  /// The snippet's own text of a range, on one line, without comments.
  std::string excerpt(Range range) const;

  /// Whether a value ends at token i: a name, a number, `)`, `]`, `}`.
  bool ends_value(std::size_t i) const;

  /// The name, call, read, number or brackets that ends before token i.
  Range operand_before(std::size_t i) const;
  /// The one that begins at token i, with a sign before it.
  Range operand_from(std::size_t i) const;

  [[noreturn]] void fail(std::size_t i, std::string message, std::string hint) const;

 private:
  void match();

  SnippetKind kind_;
  std::string_view text_;
  std::vector<SnippetToken> tokens_;
  std::vector<std::size_t> partners_;
};

/// `&&`, `||`, `,`, `;`, `?`, `:`, `&`, `|`, `^` and assignments, by any name: what binds weaker
/// than a comparison.
bool binds_weaker_than_comparison(std::string_view text);

/// `<`, `<=`, `>`, `>=`, `<=>`, `==`, `!=`, `not_eq`
bool is_comparison(std::string_view text);

}  // namespace tilewright
