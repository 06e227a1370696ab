#include "generator/snippet/number.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "generator/messages/text_location.hpp"
#include "generator/spec/number_range.hpp"

namespace tilewright {
namespace {

constexpr std::array<std::string_view, 8> kWholeSuffixes = {"",   "u",  "l",   "ul",
                                                            "lu", "ll", "ull", "llu"};

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// The spelling without separators, in small letters: none of what follows depends on them.
std::string normalized(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c != '\'') result += lower(c);
  }
  return result;
}

class NumberReader {
 public:
  explicit NumberReader(std::string_view text) : rest_(text) {}

  NumberLiteral run() {
    const std::string_view spelling = rest_;
    if (rest_.starts_with("0x")) base_ = 16;
    if (rest_.starts_with("0b")) base_ = 2;
    if (base_ != 10) rest_.remove_prefix(2);
    std::size_t digits = skip_digits(base_);
    const bool has_point = base_ != 2 && skip('.');
    if (has_point) digits += skip_digits(base_);
    if (digits == 0) return fault("has no digits");
    const bool has_exponent = base_ != 2 && skip(base_ == 16 ? 'p' : 'e');
    if (has_exponent) {
      if (!skip('+')) skip('-');
      if (skip_digits(10) == 0) return fault("has no digits in its exponent");
    }
    const bool is_whole = !has_point && !has_exponent;
    if (base_ == 16 && has_point && !has_exponent) return fault("has a point but no exponent (p0)");
    std::string_view value = spelling.substr(0, spelling.size() - rest_.size());
    if (base_ != 10) value.remove_prefix(2);
    NumberLiteral literal = with_suffix(!is_whole);
    if (!literal.fault.empty()) return literal;
    is_whole ? set_integer(value, literal) : set_floating(spelling, literal);
    std::string out_of_range = is_whole ? whole_fault(value) : floating_fault(value);
    NumberLiteral refused = fault(std::move(out_of_range));
    refused.is_out_of_range = true;
    return refused.fault.empty() ? literal : refused;
  }

 private:
  NumberLiteral with_suffix(bool is_floating) const {
    const NumberLiteral literal = {.is_floating = is_floating, .has_suffix = !rest_.empty()};
    if (is_floating && rest_ == "l")
      return fault("is a long double, which no interpretation offers");
    const bool known = is_floating ? rest_.empty() || rest_ == "f"
                                   : std::find(kWholeSuffixes.begin(), kWholeSuffixes.end(),
                                               rest_) != kWholeSuffixes.end();
    return known ? literal : fault(fmt::format("goes on with \"{}\"", printable(rest_)));
  }

  std::string whole_fault(std::string_view digits) const {
    const int base = base_of(digits);
    if (base == 8 && digits.find_first_of("89") != std::string_view::npos) {
      return "begins with 0 and so is octal, which has no 8 or 9";
    }
    return integer_fault(digits, base, has_unsigned_suffix());
  }

  std::string floating_fault(std::string_view value) const {
    switch (f32_range(value, base_ == 16)) {
      case FloatRange::holds:
        return {};
      case FloatRange::overflows:
        return "is more than a float holds, 3.4028235e38";
      case FloatRange::underflows:
        return "is less than a float holds, 1.4e-45, and would be 0";
    }
    return {};
  }

  int base_of(std::string_view digits) const {
    return base_ == 10 && digits.size() > 1 && digits[0] == '0' ? 8 : base_;
  }

  bool has_unsigned_suffix() const { return rest_.find('u') != std::string_view::npos; }

  // What no int and no signed suffix holds is unsigned unless it is decimal.
  void set_integer(std::string_view digits, NumberLiteral& literal) const {
    const int base = base_of(digits);
    const char* const end = digits.data() + digits.size();
    const bool fits = std::from_chars(digits.data(), end, literal.integer, base).ec == std::errc();
    const bool fits_int = fits && literal.integer <= std::numeric_limits<int>::max();
    literal.is_int = rest_.empty() && fits_int;
    literal.is_unsigned = !fits || has_unsigned_suffix() || (base != 10 && !literal.is_int);
  }

  static void set_floating(std::string_view spelling, NumberLiteral& literal) {
    const std::string text(spelling);
    literal.floating = literal.has_suffix ? std::strtof(text.c_str(), nullptr)
                                          : std::strtod(text.c_str(), nullptr);
  }

  static NumberLiteral fault(std::string text) { return {.fault = std::move(text)}; }

  bool skip(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::size_t skip_digits(int base) {
    const auto is_wanted = [base](char c) {
      if (base == 2) return c == '0' || c == '1';
      return is_digit(c) || (base == 16 && c >= 'a' && c <= 'f');
    };
    const auto* end = std::find_if_not(rest_.begin(), rest_.end(), is_wanted);
    const auto count = static_cast<std::size_t>(end - rest_.begin());
    rest_.remove_prefix(count);
    return count;
  }

  std::string_view rest_;
  int base_ = 10;
};

}  // namespace

NumberLiteral read_number(std::string_view text) {
  const std::string spelling = normalized(text);
  return NumberReader(spelling).run();
}

}  // namespace tilewright
