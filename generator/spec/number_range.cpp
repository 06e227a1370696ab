#include "generator/spec/number_range.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>

namespace tilewright {
namespace {

// Whether a digit other than 0 stands before the exponent.
bool is_zero(std::string_view spelling, bool is_hexadecimal) {
  const std::string_view digits =
      spelling.substr(0, spelling.find_first_of(is_hexadecimal ? "pP" : "eE"));
  return digits.find_first_not_of("0.") == std::string_view::npos;
}

// from_chars gives no value for what is out of range, so the sign of the exponent decides.
bool is_small(std::string_view spelling, bool is_hexadecimal) {
  const std::size_t exponent = spelling.find_first_of(is_hexadecimal ? "pP" : "eE");
  const bool has_negative =
      exponent != std::string_view::npos && spelling.substr(exponent + 1).starts_with('-');
  return has_negative || spelling.starts_with("0.") || spelling.starts_with('.');
}

template <typename T>
FloatRange range_of(std::string_view spelling, bool is_hexadecimal) {
  T value = 0;
  const auto format = is_hexadecimal ? std::chars_format::hex : std::chars_format::general;
  const char* const end = spelling.data() + spelling.size();
  const std::errc error = std::from_chars(spelling.data(), end, value, format).ec;
  if (is_zero(spelling, is_hexadecimal)) return FloatRange::holds;
  if (error == std::errc::result_out_of_range) {
    return is_small(spelling, is_hexadecimal) ? FloatRange::underflows : FloatRange::overflows;
  }
  if (std::isinf(value)) return FloatRange::overflows;
  return value == 0 ? FloatRange::underflows : FloatRange::holds;
}

}  // namespace

std::string integer_fault(std::string_view digits, int base, bool is_unsigned) {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const std::errc error = std::from_chars(digits.data(), end, value, base).ec;
  if (error == std::errc::result_out_of_range) return "is more than 64 bits hold";
  constexpr std::uint64_t kGreatest = std::numeric_limits<std::int64_t>::max();
  if (!is_unsigned && base == 10 && value > kGreatest) {
    return "is more than 64 bits with a sign hold";
  }
  return {};
}

FloatRange f32_range(std::string_view spelling, bool is_hexadecimal) {
  return range_of<float>(spelling, is_hexadecimal);
}

FloatRange f64_range(std::string_view spelling, bool is_hexadecimal) {
  return range_of<double>(spelling, is_hexadecimal);
}

std::int32_t low_word(double whole) {
  return static_cast<std::int32_t>(static_cast<std::int64_t>(whole) & 0xffffffff);
}

std::int32_t high_word(double whole) {
  return static_cast<std::int32_t>(static_cast<std::int64_t>(whole) >> 32);
}

bool is_exact_seed(std::string_view spelling) {
  if (spelling.starts_with('-')) spelling.remove_prefix(1);
  const std::size_t e = std::min(spelling.find_first_of("eE"), spelling.size());
  const std::size_t point = std::min(spelling.find('.'), e);
  std::string digits(spelling.substr(0, point));
  if (point < e) digits += spelling.substr(point + 1, e - point - 1);
  const auto last = digits.find_last_not_of('0');
  if (last == std::string::npos) return true;
  std::string_view power = spelling.substr(std::min(e + 1, spelling.size()));
  if (power.starts_with('+')) power.remove_prefix(1);
  int exponent = 0;
  const std::errc error = std::from_chars(power.data(), power.data() + power.size(), exponent).ec;
  if (error == std::errc::result_out_of_range) return false;
  const std::int64_t whole_digits = static_cast<std::int64_t>(point) + exponent;
  digits.resize(last + 1);
  const auto count = static_cast<std::int64_t>(digits.size());
  constexpr std::int64_t kMostDigits = 400;  // of zeros before the first digit too
  if (count > whole_digits || whole_digits > kMostDigits) return false;
  digits.append(static_cast<std::size_t>(whole_digits - count), '0');
  std::uint64_t value = 0;
  const std::errc overflow =
      std::from_chars(digits.data(), digits.data() + digits.size(), value).ec;
  return overflow == std::errc() && value <= static_cast<std::uint64_t>(kMostExactWhole);
}

FloatRange f32_range(double value) {
  const auto rounded = static_cast<float>(value);
  if (std::isinf(rounded) && !std::isinf(value)) return FloatRange::overflows;
  return rounded == 0 && value != 0 ? FloatRange::underflows : FloatRange::holds;
}

}  // namespace tilewright
