#include "base/switch_variable.hpp"

#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"

namespace tilewright {

std::optional<bool> switch_variable(const char* name, const std::string& hint) {
  const char* const value = std::getenv(name);
  const std::string_view text = value ? value : "";
  if (text.empty()) return std::nullopt;
  if (text == "1" || text == "on") return true;
  if (text == "0" || text == "off") return false;
  throw Error(ErrorCode::usage, fmt::format("{} is \"{}\"", name, text), hint);
}

}  // namespace tilewright
