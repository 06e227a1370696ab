#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tilewright {

/// "1 part", "32 parts". noun is a singular whose plural ends with s.
template <class Integer>
std::string counted(Integer count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// "1 entry", "32 entries": of a noun with another plural.
template <class Integer>
std::string counted(Integer count, std::string_view noun, std::string_view plural) {
  return fmt::format("{} {}", count, count == 1 ? noun : plural);
}

/// The verb after a count: "1 element is", "2 elements are".
template <class Integer>
const char* is_or_are(Integer count) {
  return count == 1 ? "is" : "are";
}

/// The same of what is past.
template <class Integer>
const char* was_or_were(Integer count) {
  return count == 1 ? "was" : "were";
}

}  // namespace tilewright
