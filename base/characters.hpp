#pragma once

namespace tilewright {

// The classes of <cctype> for ASCII, without its locale and its trap with negative characters.
constexpr bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
constexpr bool is_sign(char c) {
  return c == '-' || c == '+';
}
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}
constexpr char to_upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
}
constexpr bool is_hex_digit(char c) {
  return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'f');
}
constexpr bool is_name_start(char c) {
  return (to_lower(c) >= 'a' && to_lower(c) <= 'z') || c == '_';
}
constexpr bool is_name_part(char c) {
  return is_name_start(c) || is_digit(c);
}

}  // namespace tilewright
