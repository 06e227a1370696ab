#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright {

/// Why no type holds a whole number's digits, to stand after "the number 99 "; empty: one does.
/// @param digits without prefix, separators and suffix, all of them digits of the base
/// @param is_unsigned 64 bits without a sign are allowed; else 63
std::string integer_fault(std::string_view digits, int base, bool is_unsigned);

/// What a number with a point or an exponent becomes.
enum class FloatRange { holds, overflows, underflows };  // underflows: to zero, and is not zero

/// @param spelling decimal, or hexadecimal without 0x, as std::from_chars reads it; no sign
FloatRange f32_range(std::string_view spelling, bool is_hexadecimal = false);
FloatRange f64_range(std::string_view spelling, bool is_hexadecimal = false);

/// 2^53: a double holds every whole number from its negative to it.
inline constexpr double kMostExactWhole = 9007199254740992.0;
/// What to do about a seed beyond it.
inline constexpr std::string_view kSeedHint =
    "a seed as a scalar is a whole number from -9007199254740992 to 9007199254740992 (2^53); one "
    "of "
    "64 bits comes in a buffer: \"buffers\": {\"seed\": {\"dtype\": \"i64\", \"shape\": []}}";

/// Whether a decimal number is exactly a whole one that a scalar of 64 bits may have, up to 2^53.
/// @param spelling as JSON writes it, with a sign or without
bool is_exact_seed(std::string_view spelling);

/// f32_range of a value that a double holds; infinities and NaN are held.
FloatRange f32_range(double value);

/// The low and the high 32 bits of a whole number that 64 bits hold.
std::int32_t low_word(double whole);
std::int32_t high_word(double whole);

}  // namespace tilewright
