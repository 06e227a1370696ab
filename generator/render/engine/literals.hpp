#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "value.hpp"

namespace tilewright::jinja {

/// The value of an integer token: decimal, 0x, 0o or 0b, with `_` between digits.
/// @throws Complaint where it has a leading zero or does not fit in 64 bits
std::int64_t parse_integer(std::string_view token);
/// The value of a floating token. @throws Complaint where it overflows
double parse_float(std::string_view token);
/// The value of a string token with its quotes. @throws Complaint for an unknown escape
std::string parse_string(std::string_view token);

/// C++ literals that parse back to the same value. @throws Complaint for infinities and NaN
std::string cpp_literal(double value);
std::string cpp_literal(std::int64_t value);
/// The same as a float: 1.0f. Infinities and NaN become INFINITY and NAN of <cmath>.
std::string cpp_float_literal(float value);

/// What printing a value gives. @throws Complaint where it has no text: none, a list, a function,
/// ...
std::string to_text(const Value& value);

}  // namespace tilewright::jinja
