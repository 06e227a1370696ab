#pragma once

#include <optional>
#include <string>

namespace tilewright {

/// What an environment variable says that turns something on or off: "1" and "on" are true, "0" and
/// "off" false; none where it is unset or empty.
/// @param hint what to set it to
/// @throws Error with code usage for any other value
std::optional<bool> switch_variable(const char* name, const std::string& hint);

}  // namespace tilewright
