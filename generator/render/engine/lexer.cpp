#include "generator/render/engine/lexer.hpp"

#include <array>
#include <string>

#include <fmt/format.h>

#include "base/characters.hpp"

namespace tilewright::jinja {
namespace {

constexpr std::string_view kBracesHint = "for C++ braces put a space between them: { {";

// Longest first, as the first that fits is taken. Some have no meaning: the parser refuses them by
// name.
constexpr std::array<std::string_view, 29> kSymbols = {
    "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "(", ")", "[",
    "]",  "{",  "}",  "<",  ">",  "=",  ".", ":", ",", "|", ";", "&", "!", "?"};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Tokens run() {
    try {
      while (position_ < text_.size()) read_text_and_tag();
      add(TokenKind::end, position_, position_);
    } catch (PlacedComplaint& failure) {
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
    position_ = tag + 2;
    if (is_sign(at(position_))) throw white_space_sign(tag, text_.substr(tag, 3));
    add_text(begin, end_of_text(begin, tag, type != '{'));
    if (type == '#') {
      skip_comment(tag);
    } else {
      add(type == '{' ? TokenKind::variable_begin : TokenKind::block_begin, tag, position_);
      read_tag(tag, type == '{' ? '}' : '%');
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

  // Where the text before a tag ends: with lstrip, at the start of a line that holds only the tag.
  std::size_t end_of_text(std::size_t begin, std::size_t tag, bool lstrip) const {
    if (!lstrip) return tag;
    std::size_t end = tag;
    while (end > begin && text_[end - 1] != '\n' && is_space(text_[end - 1])) --end;
    return end == 0 || text_[end - 1] == '\n' ? end : tag;
  }

  void skip_comment(std::size_t tag) {
    const std::size_t end = text_.find("#}", position_);
    if (end == std::string_view::npos) throw unclosed(tag, "{#");
    if (is_sign(at(end - 1))) throw white_space_sign(end - 1, text_.substr(end - 1, 3));
    position_ = end + 2;
    skip_line_end();
  }

  void skip_line_end() {
    if (at(position_) == '\n') ++position_;
  }

  // Tokens up to the end of a tag. `closing` is the first letter of `}}` or `%}`.
  void read_tag(std::size_t tag, char closing) {
    const std::size_t most = tokens_.list.size() + kMaxTagTokens;
    while (tokens_.list.size() < most) {
      while (is_space(at(position_))) ++position_;
      if (position_ >= text_.size()) throw unclosed(tag, closing == '}' ? "{{" : "{%");
      if (read_tag_end(closing)) return;
      read_token();
    }
    throw PlacedComplaint{
        tag,
        {fmt::format("a tag holds more than {} names, numbers and operators", kMaxTagTokens),
         "use {% set %} to name a part of it"}};
  }

  bool read_tag_end(char closing) {
    const std::size_t end = position_ + (is_sign(at(position_)) ? 1 : 0);
    if (at(end) != closing || at(end + 1) != '}') return false;
    if (end > position_) throw white_space_sign(position_, text_.substr(position_, 3));
    add(closing == '}' ? TokenKind::variable_end : TokenKind::block_end, end, end + 2);
    position_ = end + 2;
    if (closing == '%') skip_line_end();
    return true;
  }

  void read_token() {
    const char c = text_[position_];
    if (is_name_start(c)) return read_name();
    if (is_digit(c)) return read_number();
    if (c == '"' || c == '\'') return read_string(c);
    for (const std::string_view symbol : kSymbols) {
      if (!text_.substr(position_).starts_with(symbol)) continue;
      add(TokenKind::symbol, position_, position_ + symbol.size());
      position_ += symbol.size();
      return;
    }
    throw PlacedComplaint{position_, unexpected_character(c)};
  }

  void read_name() {
    const std::size_t begin = position_;
    while (is_name_part(at(position_))) ++position_;
    if (position_ - begin > kMaxNameBytes) {
      throw PlacedComplaint{begin, {fmt::format("a name is longer than {} bytes", kMaxNameBytes)}};
    }
    add(TokenKind::name, begin, position_);
  }

  void read_number() {
    const std::size_t begin = position_;
    while (is_digit(at(position_))) ++position_;
    if (is_name_part(at(position_)) || (at(position_) == '.' && is_digit(at(position_ + 1)))) {
      throw PlacedComplaint{begin,
                            {"a number is a decimal integer",
                             "write another C++ literal in quotes: \"0.5f\", \"0xff\""}};
    }
    add(TokenKind::integer, begin, position_);
  }

  void read_string(char quote) {
    const std::size_t begin = position_++;
    while (at(position_) != quote) {
      if (position_ >= text_.size()) {
        throw PlacedComplaint{
            begin, {"this string is never closed", fmt::format("end it with {}", quote)}};
      }
      position_ += text_[position_] == '\\' ? 2 : 1;
    }
    ++position_;
    add(TokenKind::string, begin, position_);
  }

  static Complaint unexpected_character(char c) {
    const bool printable = c >= 0x20 && c < 0x7f;
    if (printable) return {fmt::format("unexpected character `{}`", c)};
    return {fmt::format("unexpected byte 0x{:02x}", static_cast<unsigned char>(c))};
  }

  static PlacedComplaint white_space_sign(std::size_t offset, std::string_view sign) {
    return {offset,
            {fmt::format("the white space sign of `{}` is not supported", sign),
             "a tag on a line of its own leaves no trace; before a negative number put a space"}};
  }

  static PlacedComplaint unclosed(std::size_t tag, std::string_view opening) {
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
