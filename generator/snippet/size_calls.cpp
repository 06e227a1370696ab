#include "generator/snippet/size_calls.hpp"

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "generator/snippet/number.hpp"
#include "generator/snippet/words.hpp"

namespace tilewright {
namespace {

using Tokens = std::vector<SnippetToken>;

// The value of `text`, a number without a point. Empty where it has more digits than a dimension.
std::optional<double> whole_number(std::string_view text) {
  std::string digits;
  for (const char c : text.substr(0, text.find_first_of("uUlLzZ"))) {
    if (c != '\'') digits += c;
  }
  const bool is_hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
  const bool is_binary = digits.starts_with("0b") || digits.starts_with("0B");
  const int base = is_hexadecimal ? 16 : is_binary ? 2 : digits.starts_with('0') ? 8 : 10;
  const char* const begin = digits.data() + (is_hexadecimal || is_binary ? 2 : 0);
  const char* const end = digits.data() + digits.size();
  unsigned long long value = 0;
  if (std::from_chars(begin, end, value, base).ptr != end) return {};
  return static_cast<double>(value);
}

// As the call converts it: 1.9 is dimension 1.
std::optional<double> cut_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const bool is_read = error == std::errc() && (suffix.empty() || suffix == "f" || suffix == "F");
  return is_read ? std::optional(std::trunc(value)) : std::nullopt;
}

// The value of an expression of numbers: `1`, `-1`, `(2 - 1)`. Empty where it holds anything else.
class Constant {
 public:
  Constant(const Tokens& tokens, std::size_t begin) : tokens_(tokens), at_(begin) {}

  // Up to the `)` of a call.
  std::optional<double> argument() {
    const std::optional<double> value = sum();
    return value && text() == ")" ? value : std::nullopt;
  }

 private:
  std::string_view text() const { return at_ < tokens_.size() ? tokens_[at_].text : ""; }

  std::optional<double> sum() {
    std::optional<double> left = product();
    while (left && (text() == "+" || text() == "-")) {
      const double sign = tokens_[at_++].text == "+" ? 1 : -1;
      const std::optional<double> right = product();
      left = right ? std::optional(*left + sign * *right) : std::nullopt;
    }
    return left;
  }

  std::optional<double> product() {
    std::optional<double> left = factor();
    while (left && text() == "*") {
      ++at_;
      const std::optional<double> right = factor();
      left = right ? std::optional(*left * *right) : std::nullopt;
    }
    return left;
  }

  std::optional<double> factor() {
    if (at_ == tokens_.size()) return {};
    const SnippetToken& token = tokens_[at_++];
    if (token.kind == SnippetToken::Kind::number) {
      return read_number(token.text).is_floating ? cut_number(token.text)
                                                 : whole_number(token.text);
    }
    if (token.text == "true" || token.text == "false") return token.text == "true" ? 1 : 0;
    if (token.text == "-" || token.text == "+") {
      const std::optional<double> value = factor();
      return value && token.text == "-" ? std::optional(-*value) : value;
    }
    if (token.text != "(") return {};
    const std::optional<double> value = sum();
    if (text() != ")") return {};
    ++at_;
    return value;
  }

  const Tokens& tokens_;
  std::size_t at_;
};

}  // namespace

void check_size_calls(const Spec& spec, SnippetKind kind, std::string_view text) {
  const Tokens tokens = tokenize(text, kind);
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    const auto buffer = spec.buffers.find(std::string(tokens[i].text));
    if (!is_identifier(tokens[i]) || buffer == spec.buffers.end()) continue;
    if (i > 0 && tokens[i - 1].text == ".") continue;
    const std::size_t rank = buffer->second.shape.size();
    const std::string_view next = tokens[i + 1].text;
    if (rank == 0 && (next == "[" || next == "(" || next == ".")) {
      throw snippet_error(kind, text, tokens[i + 1].offset,
                          fmt::format("buffer \"{}\" has no dimensions", buffer->first),
                          fmt::format("write {} alone", buffer->first));
    }
    std::size_t call = i + 1;
    while (call < tokens.size() && tokens[call].text == ")") ++call;  // (x).size(1)
    if (call + 3 >= tokens.size() || tokens[call].text != "." || tokens[call + 1].text != "size" ||
        tokens[call + 2].text != "(") {
      continue;
    }
    const std::optional<double> dimension = Constant(tokens, call + 3).argument();
    if (!dimension || (*dimension >= 0 && *dimension < static_cast<double>(rank))) continue;
    throw snippet_error(kind, text, tokens[call + 3].offset,
                        fmt::format("size({:.0f}) of buffer \"{}\", which has {}", *dimension,
                                    buffer->first, counted(rank, "dimension")),
                        rank == 1 ? fmt::format("write {}.size(0)", buffer->first)
                                  : fmt::format("dimensions are 0 to {}", rank - 1));
  }
}

}  // namespace tilewright
