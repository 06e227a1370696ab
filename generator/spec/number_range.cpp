#include "generator/spec/number_range.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
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

FloatRange f32_range(double value) {
  const auto rounded = static_cast<float>(value);
  if (std::isinf(rounded) && !std::isinf(value)) return FloatRange::overflows;
  return rounded == 0 && value != 0 ? FloatRange::underflows : FloatRange::holds;
}

}  // namespace tilewright
