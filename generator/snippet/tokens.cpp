#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "generator/messages/text_location.hpp"
#include "generator/snippet/number.hpp"
#include "generator/snippet/snippet.hpp"

namespace tilewright {
namespace {

using TokenKind = SnippetToken::Kind;

bool is_word(char c) {
  return is_name_start(c) || is_digit(c);
}
bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

// Longest first, so that the first match is the token. Digraphs are last: they are told apart by
// their own rule.
constexpr std::array<std::string_view, 32> kOperators = {
    "<=>", "<<=", ">>=", "->*", "...", "::", "->", ".*", "++", "--", "<<",
    ">>",  "<=",  ">=",  "==",  "!=",  "&&", "||", "+=", "-=", "*=", "/=",
    "%=",  "&=",  "|=",  "^=",  "##",  "<:", ":>", "<%", "%>", "%:"};
constexpr std::string_view kSingleOperators = "+-*/%^&|~!=<>?:;,.()[]{}#";

// What the text as a whole must not hold, wherever it stands.
class ByteCheck {
 public:
  ByteCheck(std::string_view text, SnippetKind kind) : text_(text), kind_(kind) {}

  void run() const {
    if (text_.size() > kMaxSnippetBytes) {
      fail(kMaxSnippetBytes, fmt::format("{} is longer than {} bytes", name(), kMaxSnippetBytes),
           "move tables into buffers");
    }
    if (const auto at = first_malformed_utf8(text_)) {
      fail(*at, fmt::format("byte 0x{:02x} is not part of well-formed UTF-8", byte(*at)),
           "save the text as UTF-8");
    }
    if (const auto at = first_deceptive_character(text_)) {
      fail(*at, "an invisible character that can make code read differently than it compiles",
           "delete it");
    }
    for (std::size_t i = 0; i < text_.size(); ++i) check(i);
  }

 private:
  void check(std::size_t i) const {
    const char c = text_[i];
    const bool carriage_return = c == '\r' && i + 1 < text_.size() && text_[i + 1] == '\n';
    if (byte(i) == 0x7F || (byte(i) < 0x20 && c != '\t' && c != '\n' && !carriage_return)) {
      fail(i, fmt::format("control character 0x{:02x}", byte(i)), "delete it");
    }
    if (text_.substr(i, 3) == "\?\?/") fail(i, "a trigraph for a backslash", "delete it");
    if (c != '\\') return;
    const std::size_t next = text_.find_first_not_of(" \t\r", i + 1);
    if (next == std::string_view::npos || text_[next] == '\n') {
      fail(i, "a backslash at the end of a line joins it with the next one",
           "delete it: C++ needs none to go on in the next line");
    }
  }

  unsigned byte(std::size_t i) const { return static_cast<unsigned char>(text_[i]); }
  std::string_view name() const { return to_string(kind_); }
  [[noreturn]] void fail(std::size_t at, std::string message, std::string hint) const {
    throw snippet_error(kind_, text_, at, std::move(message), std::move(hint));
  }

  std::string_view text_;
  SnippetKind kind_;
};

class Tokenizer {
 public:
  Tokenizer(std::string_view text, SnippetKind kind) : text_(text), kind_(kind) {}

  std::vector<SnippetToken> run() {
    ByteCheck(text_, kind_).run();
    std::vector<SnippetToken> tokens;
    while (true) {
      skip_spaces_and_comments();
      if (at_ == text_.size()) return tokens;
      tokens.push_back(next());
    }
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }

  void advance(std::size_t bytes) {
    for (; bytes > 0; --bytes, ++at_) {
      if (text_[at_] == '\n') {
        ++line_;
        line_start_ = at_ + 1;
      }
    }
  }

  void skip_spaces_and_comments() {
    while (true) {
      const std::size_t next = text_.find_first_not_of(" \t\r\n", at_);
      advance(std::min(next, text_.size()) - at_);
      if (rest().starts_with("//")) {
        advance(std::min(text_.find('\n', at_), text_.size()) - at_);
      } else if (rest().starts_with("/*")) {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) fail(at_, "a comment is not closed", "add */");
        advance(end + 2 - at_);
      } else {
        return;
      }
    }
  }

  SnippetToken next() {
    const char c = text_[at_];
    if (c == '"' || c == '\'') return quoted();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    if (is_name_start(c)) return word();
    return punctuation();
  }

  char peek(std::size_t distance) const {
    return at_ + distance < text_.size() ? text_[at_ + distance] : '\0';
  }

  SnippetToken take(TokenKind kind, std::size_t bytes) {
    const SnippetToken token = {.kind = kind,
                                .text = text_.substr(at_, bytes),
                                .offset = at_,
                                .line = line_,
                                .column = static_cast<int>(at_ - line_start_) + 1};
    advance(bytes);
    return token;
  }

  SnippetToken quoted() {
    const char quote = text_[at_];
    for (std::size_t i = at_ + 1; i < text_.size() && text_[i] != '\n'; ++i) {
      if (text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        return take(quote == '"' ? TokenKind::string : TokenKind::character, i + 1 - at_);
      }
    }
    const bool is_string = quote == '"';
    fail(at_, is_string ? "a string is not closed" : "a character is not closed",
         is_string ? "add \" before the end of the line" : "add ' before the end of the line");
  }

  // C++ reads a number as far as it can (0x1e+3 is one token), and so must we.
  SnippetToken number() {
    std::size_t bytes = 1;
    for (;; ++bytes) {
      const char before = peek(bytes - 1);
      const bool exponent = before == 'e' || before == 'E' || before == 'p' || before == 'P';
      const char c = peek(bytes);
      const bool sign = exponent && (c == '+' || c == '-');
      const bool separator = c == '\'' && is_word(peek(bytes + 1));
      if (!is_word(c) && c != '.' && !sign && !separator) break;
    }
    const std::string_view text = text_.substr(at_, bytes);
    if (const NumberLiteral literal = read_number(text); !literal.fault.empty()) {
      fail(at_, fmt::format("the number {} {}", printable(text), literal.fault),
           literal.is_out_of_range
               ? "whole numbers go to 9223372036854775807, or 18446744073709551615u; others from "
                 "1.4e-45 to 3.4028235e38, and then there is INFINITY"
               : "write 12, 0x1F, 0b101, 0.5, 1e-3 or 0x1p-4, with the suffixes u and ll for whole "
                 "numbers and f for others");
    }
    return take(TokenKind::number, bytes);
  }

  SnippetToken word() {
    std::size_t bytes = 1;
    while (is_word(peek(bytes))) ++bytes;
    const std::string_view text = text_.substr(at_, bytes);
    const bool raw = text == "R" || text == "u8R" || text == "uR" || text == "UR" || text == "LR";
    if (raw && peek(bytes) == '"') {
      fail(at_, "a raw string is not allowed", "write a plain string, or none");
    }
    return take(TokenKind::identifier, bytes);
  }

  SnippetToken punctuation() {
    const std::size_t bytes = punctuation_bytes();
    if (bytes > 0) return take(TokenKind::punctuation, bytes);
    if (!is_ascii(text_[at_])) {
      fail(at_, "a character outside ASCII, which only strings and comments may hold",
           "replace it by its ASCII look-alike, or delete it");
    }
    fail(at_, fmt::format("'{}' means nothing in C++", text_[at_]), "delete it");
  }

  std::size_t punctuation_bytes() const {
    // [lex.pptoken]: `<::` is `<` and `::`, unless : or > follows.
    if (rest().starts_with("<::") && peek(3) != ':' && peek(3) != '>') return 1;
    for (std::string_view op : kOperators) {
      if (rest().starts_with(op)) return op.size();
    }
    return kSingleOperators.find(text_[at_]) != std::string_view::npos ? 1 : 0;
  }

  [[noreturn]] void fail(std::size_t at, std::string message, std::string hint) const {
    throw snippet_error(kind_, text_, at, std::move(message), std::move(hint));
  }

  std::string_view text_;
  SnippetKind kind_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

thread_local std::uint64_t calls = 0;

}  // namespace

std::uint64_t tokenizations() {
  return calls;
}

std::vector<SnippetToken> tokenize(std::string_view text, SnippetKind kind) {
  ++calls;
  return Tokenizer(text, kind).run();
}

}  // namespace tilewright
