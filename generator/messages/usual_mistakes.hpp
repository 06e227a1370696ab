#pragma once

#include <cstdint>
#include <string_view>

namespace tilewright {

/// Where a name was met that means nothing there.
enum class MistakeIn : std::uint8_t { snippet, key, option, device, target, verb };

/// What to write in place of a name that other libraries, Python or other tools use: "write
/// INFINITY" for `inf` in a snippet. Empty for any other name. Ask it before the nearest name.
/// @param name as it was written; options with their dashes. Case matters in snippets only.
std::string_view usual_mistake(MistakeIn where, std::string_view name);

}  // namespace tilewright
