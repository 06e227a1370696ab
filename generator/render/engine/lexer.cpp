#include "generator/render/engine/lexer.hpp"

#include <array>
#include <string>

#include <fmt/format.h>

#include "base/characters.hpp"

namespace tilewright::jinja {
namespace {

constexpr std::string_view kBracesHint = "for C++ braces put a space between them: { {";

// Longest first, as the first that fits is taken.
constexpr std::array<std::string_view, 26> kSymbols = {
    "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "(",
    ")",  "[",  "]",  "{",  "}",  "<",  ">", "=", ".", ":", ",", "|", ";"};

struct Failure {
  std::size_t offset;
  Complaint complaint;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Tokens run() {
    try {
      while (position_ < text_.size()) read_text_and_tag();
      add(TokenKind::end, position_, position_);
    } catch (Failure& failure) {
      add(TokenKind::error, failure.offset, failure.offset);
      tokens_.error = std::move(failure.complaint);
    }
    return std::move(tokens_);
  }

 private:
  void read_text_and_tag() {
    const std::size_t begin = position_;
    const std::size_t tag = find_tag(begin);
    if (tag == std::string_view::npos) {
      position_ = text_.size();
      add_text(begin, position_);
      return;
    }
    const char type = text_[tag + 1];
    const std::size_t inside = tag + 2 + (is_sign(at(tag + 2)) ? 1 : 0);
    add_text(begin, end_of_text(begin, tag, type != '{'));
    position_ = inside;
    if (type == '#') {
      skip_comment(tag);
    } else if (type == '{') {
      add(TokenKind::variable_begin, tag, inside);
      read_tag(tag, '}');
    } else if (!read_raw(tag, inside)) {
      add(TokenKind::block_begin, tag, inside);
      read_tag(tag, '%');
    }
  }

  std::size_t find_tag(std::size_t from) const {
    for (std::size_t i = text_.find('{', from); i != std::string_view::npos;
         i = text_.find('{', i + 1)) {
      const char next = at(i + 1);
      if (next == '{' || next == '%' || next == '#') return i;
    }
    return std::string_view::npos;
  }

  // Where the text before a tag ends once white space control has been applied.
  std::size_t end_of_text(std::size_t begin, std::size_t tag, bool lstrip) const {
    std::size_t end = tag;
    while (end > begin && is_space(text_[end - 1])) --end;
    const char sign = at(tag + 2);
    if (sign == '-') return end;
    if (sign == '+' || !lstrip) return tag;
    // Only white space may stand between the start of the line and the tag.
    std::size_t line = tag;
    while (line > begin && text_[line - 1] != '\n') --line;
    const bool starts_line = line > 0 ? text_[line - 1] == '\n' : true;
    return starts_line && end <= line ? line : tag;
  }

  void skip_comment(std::size_t tag) {
    const std::size_t end = text_.find("#}", position_);
    if (end == std::string_view::npos) throw unclosed(tag, "{#");
    const char sign = end > position_ ? text_[end - 1] : ' ';
    position_ = end + 2;
    skip_after_tag(sign);
  }

  // What is swallowed after `%}` and `#}`: with '-' all white space, without a sign one line end.
  void skip_after_tag(char sign) {
    if (sign == '-') {
      while (is_space(at(position_))) ++position_;
    } else if (sign != '+' && at(position_) == '\n') {
      ++position_;
    }
  }

  // {% raw %} ... {% endraw %} is text whatever it holds.
  bool read_raw(std::size_t tag, std::size_t inside) {
    std::size_t after = match_word(inside, "raw");
    if (after == 0) return false;
    const char sign = text_[after - 3];
    if (sign == '-') {
      while (is_space(at(after))) ++after;
    }
    for (std::size_t i = text_.find("{%", after); i != std::string_view::npos;
         i = text_.find("{%", i + 2)) {
      const std::size_t end = match_word(i + 2 + (is_sign(at(i + 2)) ? 1 : 0), "endraw");
      if (end == 0) continue;
      add_text(after, end_of_text(after, i, true));
      position_ = end;
      skip_after_tag(text_[end - 3]);
      return true;
    }
    throw Failure{tag, {"this {% raw %} is never closed", "write {% endraw %} where it ends"}};
  }

  // The position after `word %}`, or 0 where something else stands there.
  std::size_t match_word(std::size_t from, std::string_view word) const {
    while (is_space(at(from))) ++from;
    if (text_.substr(from, word.size()) != word) return 0;
    from += word.size();
    while (is_space(at(from))) ++from;
    if (is_sign(at(from))) ++from;
    return text_.substr(from, 2) == "%}" ? from + 2 : 0;
  }

  // Tokens up to the end of a tag. `closing` is the first letter of `}}` or `%}`.
  void read_tag(std::size_t tag, char closing) {
    std::string open_brackets;
    while (true) {
      while (is_space(at(position_))) ++position_;
      if (position_ >= text_.size()) throw unclosed(tag, closing == '}' ? "{{" : "{%");
      if (read_tag_end(closing, open_brackets)) return;
      read_token(closing, open_brackets);
    }
  }

  bool read_tag_end(char closing, const std::string& open_brackets) {
    const bool in_map = !open_brackets.empty() && open_brackets.back() == '{';
    if (closing == '}' && in_map) return false;
    const std::size_t begin = position_;
    const char sign = is_sign(at(begin)) ? at(begin) : ' ';
    const std::size_t end = begin + (sign == ' ' ? 0 : 1);
    if (at(end) != closing || at(end + 1) != '}') return false;
    if (closing == '}' && sign == '+') return false;
    position_ = end + 2;
    add(closing == '}' ? TokenKind::variable_end : TokenKind::block_end, begin, position_);
    if (closing == '%' || sign == '-') skip_after_tag(sign);
    return true;
  }

  void read_token(char closing, std::string& open_brackets) {
    const char c = text_[position_];
    if (is_name_start(c)) return read_name();
    if (is_digit(c)) return read_number();
    if (c == '"' || c == '\'') return read_string(c);
    for (const std::string_view symbol : kSymbols) {
      if (text_.substr(position_, symbol.size()) != symbol) continue;
      track_brackets(symbol[0], closing, open_brackets);
      add(TokenKind::symbol, position_, position_ + symbol.size());
      position_ += symbol.size();
      return;
    }
    throw Failure{position_, unexpected_character(c)};
  }

  void track_brackets(char c, char closing, std::string& open_brackets) const {
    if (c == '(' || c == '[' || c == '{') open_brackets += c;
    if (c != ')' && c != ']' && c != '}') return;
    if (open_brackets.empty()) {
      const bool braces = c == '}' && closing == '}';
      throw Failure{
          position_,
          {fmt::format("`{}` closes nothing", c), std::string(braces ? kBracesHint : "")}};
    }
    open_brackets.pop_back();
  }

  void read_name() {
    const std::size_t begin = position_;
    while (is_name_part(at(position_))) ++position_;
    if (position_ - begin > kMaxNameBytes) {
      throw Failure{begin, {fmt::format("a name is longer than {} bytes", kMaxNameBytes)}};
    }
    add(TokenKind::name, begin, position_);
  }

  void read_number() {
    const std::size_t begin = position_;
    const char base = text_[begin] == '0' ? to_lower(at(begin + 1)) : ' ';
    if (base == 'x' || base == 'b' || base == 'o') {
      position_ += 2;
      while (is_hex_digit(at(position_)) || at(position_) == '_') ++position_;
      return add(TokenKind::integer, begin, position_);
    }
    TokenKind kind = TokenKind::integer;
    skip_digits();
    if (at(position_) == '.' && is_digit(at(position_ + 1))) {
      kind = TokenKind::floating;
      ++position_;
      skip_digits();
    }
    const std::size_t sign = to_lower(at(position_)) == 'e' && is_sign(at(position_ + 1)) ? 1 : 0;
    if (to_lower(at(position_)) == 'e' && is_digit(at(position_ + 1 + sign))) {
      kind = TokenKind::floating;
      position_ += 1 + sign;
      skip_digits();
    }
    add(kind, begin, position_);
  }

  void skip_digits() {
    while (is_digit(at(position_)) || (at(position_) == '_' && is_digit(at(position_ + 1)))) {
      ++position_;
    }
  }

  void read_string(char quote) {
    const std::size_t begin = position_++;
    while (at(position_) != quote) {
      if (position_ >= text_.size()) {
        throw Failure{begin, {"this string is never closed", fmt::format("end it with {}", quote)}};
      }
      position_ += text_[position_] == '\\' ? 2 : 1;
    }
    ++position_;
    add(TokenKind::string, begin, position_);
  }

  static Complaint unexpected_character(char c) {
    if (c == '&') return {"`&` is no operator", "write `and`"};
    if (c == '!') return {"`!` is no operator", "write `not`, or `!=` to compare"};
    if (c == '?') return {"`?` is no operator", "write `a if condition else b`"};
    const bool printable = c >= 0x20 && c < 0x7f;
    if (printable) return {fmt::format("unexpected character `{}`", c)};
    return {fmt::format("unexpected byte 0x{:02x}", static_cast<unsigned char>(c))};
  }

  static Failure unclosed(std::size_t tag, std::string_view opening) {
    const std::string_view closing = opening == "{{" ? "}}" : opening == "{%" ? "%}" : "#}";
    std::string hint = fmt::format("write `{}` where it ends", closing);
    if (opening == "{{") hint += fmt::format("; {}", kBracesHint);
    return {tag, {fmt::format("this `{}` is never closed", opening), hint}};
  }

  void add_text(std::size_t begin, std::size_t end) {
    if (begin < end) add(TokenKind::text, begin, end);
  }
  void add(TokenKind kind, std::size_t begin, std::size_t end) {
    tokens_.list.push_back(
        {kind, static_cast<std::uint32_t>(begin), text_.substr(begin, end - begin)});
  }

  char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  std::string_view text_;
  std::size_t position_ = 0;
  Tokens tokens_;
};

}  // namespace

Tokens tokenize(std::string_view text) {
  return Lexer(text).run();
}

}  // namespace tilewright::jinja
