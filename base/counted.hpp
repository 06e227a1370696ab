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

}  // namespace tilewright
