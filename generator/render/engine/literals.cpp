#include "generator/render/engine/literals.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "generator/render/engine/complaint.hpp"

namespace tilewright::jinja {
namespace {

std::string without_underscores(std::string_view token) {
  std::string digits;
  for (const char c : token) {
    if (c != '_') digits += c;
  }
  return digits;
}

int base_of(std::string_view digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  const char letter = to_lower(digits[1]);
  return letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
}

// The shortest digits that parse back, written as Python does: an exponent below 1e-4 and from
// 1e16.
template <typename Float>
std::string shortest(Float value) {
  std::array<char, 64> buffer;
  char* const end = buffer.data() + buffer.size();
  auto written = std::to_chars(buffer.data(), end, value, std::chars_format::scientific);
  const std::string scientific(buffer.data(), written.ptr);
  const int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
  if (exponent < -4 || exponent >= 16) return scientific;
  written = std::to_chars(buffer.data(), end, value, std::chars_format::fixed);
  std::string fixed(buffer.data(), written.ptr);
  return fixed.find('.') == std::string::npos ? fixed + ".0" : fixed;
}

void append_utf8(std::string& text, unsigned code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | (code >> 6));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    text += static_cast<char>(0xE0 | (code >> 12));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

// \xHH and \uHHHH: a code point, printed as UTF-8.
std::size_t append_hex_escape(std::string& text, std::string_view digits) {
  unsigned code = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (error != std::errc() || end != digits.data() + digits.size() || surrogate) {
    throw Complaint{fmt::format("{} is no character's number", quoted(digits))};
  }
  append_utf8(text, code);
  return digits.size();
}

// Appends what `\c...` stands for; returns how many letters after the backslash it took.
std::size_t append_escape(std::string& text, std::string_view rest) {
  switch (rest[0]) {
    case 'n':
      text += '\n';
      return 1;
    case 't':
      text += '\t';
      return 1;
    case 'r':
      text += '\r';
      return 1;
    case '0':
      text += '\0';
      return 1;
    case '\\':
    case '"':
    case '\'':
      text += rest[0];
      return 1;
    case 'x':
      return 1 + append_hex_escape(text, rest.substr(1, 2));
    case 'u':
      return 1 + append_hex_escape(text, rest.substr(1, 4));
    default:
      throw Complaint{
          fmt::format("unknown escape {} in a string", quoted("\\" + std::string(1, rest[0]))),
          R"(known are \n \t \r \0 \\ \" \' \xHH \uHHHH; write \\ for a backslash)"};
  }
}

}  // namespace

std::int64_t parse_integer(std::string_view token) {
  const std::string digits = without_underscores(token);
  const int base = base_of(digits);
  const bool zeros = digits.find_first_not_of('0') == std::string::npos;
  if (base == 10 && digits.size() > 1 && digits[0] == '0' && !zeros) {
    throw Complaint{fmt::format("the number {} has a leading zero", token),
                    "octal is written 0o17"};
  }
  const char* const begin = digits.data() + (base == 10 ? 0 : 2);
  const char* const end = digits.data() + digits.size();
  std::int64_t value = 0;
  const auto [last, error] = std::from_chars(begin, end, value, base);
  if (error == std::errc::result_out_of_range) {
    throw Complaint{fmt::format("the number {} does not fit in 64 bits", quoted(token))};
  }
  if (error != std::errc() || last != end || token.back() == '_') {
    throw Complaint{fmt::format("{} is no number", quoted(token))};
  }
  return value;
}

double parse_float(std::string_view token) {
  const std::string digits = without_underscores(token);
  double value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec == std::errc::result_out_of_range) {
    throw Complaint{fmt::format("the number {} is out of a double's range", quoted(token))};
  }
  return value;
}

std::string parse_string(std::string_view token) {
  const std::string_view inside = token.substr(1, token.size() - 2);
  std::string text;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] == '\\') {
      i += append_escape(text, inside.substr(i + 1));
    } else {
      text += inside[i];
    }
  }
  return text;
}

std::string cpp_literal(double value) {
  if (!std::isfinite(value)) {
    throw Complaint{fmt::format("{} has no C++ literal", value),
                    "`|cpp_float` prints INFINITY and NAN of <cmath>"};
  }
  return shortest(value);
}

std::string cpp_literal(std::int64_t value) {
  // C++ has no literal for the least integer: -9223372036854775808 is a negated, too large number.
  if (value == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807 - 1)";
  return std::to_string(value);
}

std::string cpp_float_literal(float value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  return shortest(value) + 'f';
}

std::string to_text(const Value& value) {
  if (const auto* text = value.as_string()) return *text;
  if (const auto* number = value.as_int()) return cpp_literal(*number);
  if (const auto* number = value.as_float()) return cpp_literal(*number);
  if (const auto* truth = value.as_bool()) return *truth ? "true" : "false";
  std::string hint;
  if (value.is_none()) hint = "test it with `is none`";
  if (value.as_list()) hint = "write `|join(\", \")`";
  if (value.as_map()) hint = "loop over its items() and print them";
  if (value.as_function()) hint = "call it: add parentheses";
  if (value.as_splice()) hint = "a splice can only be printed by itself: {{ it }}";
  const std::string_view article = value.is_none() ? "" : "a ";
  throw Complaint{fmt::format("{}{} cannot be printed", article, value.type_name()), hint};
}

}  // namespace tilewright::jinja
