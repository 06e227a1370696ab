#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "generator/render/engine/bound_arguments.hpp"
#include "generator/render/engine/filters.hpp"
#include "generator/render/engine/literals.hpp"
#include "generator/render/engine/operators.hpp"

namespace tilewright::jinja::filters {
namespace {

[[noreturn]] void fail_number(std::string_view filter, const Value& input) {
  if (const auto* text = input.as_string()) {
    throw Complaint{fmt::format("the filter {} cannot read {}", filter, quoted(*text))};
  }
  throw Complaint{fmt::format("the filter {} needs a number and got {}", filter, a_type(input))};
}

std::int64_t integer_of(std::string_view filter, const Value& input) {
  if (const auto* number = input.as_int()) return *number;
  throw Complaint{fmt::format("the filter {} needs an int and got {}", filter, a_type(input))};
}

double double_of(std::string_view filter, const Value& input) {
  if (const auto* number = input.as_float()) return *number;
  if (const auto* number = input.as_int()) return static_cast<double>(*number);
  fail_number(filter, input);
}

template <typename Number>
std::optional<Number> parse_all(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  if (text.size() > 1 && text[0] == '+' && !is_sign(text[1])) text.remove_prefix(1);
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::int64_t truncate(double number) {
  if (!(number > -0x1p63 && number < 0x1p63)) {
    throw Complaint{fmt::format("{} does not fit in a 64-bit int", number)};
  }
  return static_cast<std::int64_t>(number);
}

// printf rounds the exact binary value, ties to even, as Python's round does.
double round_to(double number, std::int64_t digits) {
  std::array<char, 400> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%.*f", static_cast<int>(digits), number);
  return std::strtod(buffer.data(), nullptr);
}

}  // namespace

Value to_int(const Value& input, const Arguments& arguments, Budget&) {
  const BoundArguments bound("the filter int", arguments, {"default"});
  if (input.as_int()) return input;
  if (const auto* number = input.as_float()) return truncate(*number);
  if (const auto* truth = input.as_bool()) return *truth ? 1 : 0;
  const auto* text = input.as_string();
  if (text) {
    if (const auto number = parse_all<std::int64_t>(*text)) return *number;
  }
  if (bound.find(0)) return bound.integer(0);
  fail_number("int", input);
}

Value to_float(const Value& input, const Arguments& arguments, Budget&) {
  const BoundArguments bound("the filter float", arguments, {"default"});
  if (input.as_float()) return input;
  if (const auto* number = input.as_int()) return static_cast<double>(*number);
  const auto* text = input.as_string();
  if (text) {
    if (const auto number = parse_all<double>(*text)) return *number;
  }
  if (bound.find(0)) return double_of("float", *bound.find(0));
  fail_number("float", input);
}

Value cpp_float(const Value& input, const Arguments& arguments, Budget&) {
  const BoundArguments bound("the filter cpp_float", arguments, {"type"});
  const std::string type = bound.string_or(0, "float");
  const double number = double_of("cpp_float", input);
  if (type == "double") {
    return std::isfinite(number) ? cpp_literal(number)
                                 : cpp_float_literal(static_cast<float>(number));
  }
  if (type != "float") {
    throw Complaint{fmt::format("the filter cpp_float knows no type {}", quoted(type)),
                    R"(types are "float" and "double")"};
  }
  // The largest double that rounds to a float lies half a unit above the largest float.
  const bool fits = std::fabs(number) < 0x1.ffffffp127;
  if (std::isfinite(number) && !fits) {
    throw Complaint{fmt::format("{} is out of a float's range", number)};
  }
  return cpp_float_literal(static_cast<float>(number));
}

Value round(const Value& input, const Arguments& arguments, Budget&) {
  const BoundArguments bound("the filter round", arguments, {"precision", "method"});
  const std::int64_t digits = bound.integer_or(0, 0);
  const std::string method = bound.string_or(1, "common");
  if (digits < 0 || digits > 17) {
    throw Complaint{fmt::format("the filter round takes 0 to 17 digits and got {}", digits)};
  }
  if (method != "common" && method != "ceil" && method != "floor") {
    throw Complaint{fmt::format("the filter round knows no method {}", quoted(method)),
                    R"(methods are "common", "ceil" and "floor")"};
  }
  if (method == "common" && input.as_int()) return input;
  const double number = double_of("round", input);
  if (!std::isfinite(number)) throw Complaint{fmt::format("{} cannot be rounded", number)};
  if (method == "common") return round_to(number, digits);
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = number * scale;
  const double rounded = (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale;
  return rounded == 0 ? 0.0 : rounded;
}

Value absolute(const Value& input, const Arguments& arguments, Budget&) {
  const BoundArguments none("the filter abs", arguments, {});
  const auto* number = input.as_int();
  if (!number) return std::fabs(double_of("abs", input));
  return *number < 0 ? apply_unary(UnaryOperator::minus, input) : input;
}

Value hex(const Value& input, const Arguments& arguments, Budget&) {
  const BoundArguments none("the filter hex", arguments, {});
  const std::int64_t number = integer_of("hex", input);
  if (number < 0)
    throw Complaint{fmt::format("the filter hex cannot print the negative {}", number)};
  return fmt::format("{:#x}", number);
}

Value pow2(const Value& input, const Arguments& arguments, Budget&) {
  const BoundArguments none("the filter pow2", arguments, {});
  const std::int64_t number = integer_of("pow2", input);
  if (number < 1 || number > std::int64_t{1} << 62) {
    throw Complaint{fmt::format("the filter pow2 takes 1 to 2**62 and got {}", number)};
  }
  std::int64_t power = 1;
  while (power < number) power *= 2;
  return power;
}

Value ceil_div(const Value& input, const Arguments& arguments, Budget&) {
  const BoundArguments bound("the filter ceil_div", arguments, {"divisor"});
  const std::int64_t number = integer_of("ceil_div", input);
  const std::int64_t divisor = bound.integer(0);
  if (divisor <= 0) {
    throw Complaint{
        fmt::format("the filter ceil_div needs a positive divisor and got {}", divisor)};
  }
  return number / divisor + (number % divisor > 0 ? 1 : 0);
}

}  // namespace tilewright::jinja::filters
