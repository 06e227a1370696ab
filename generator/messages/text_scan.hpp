#pragma once

#include <optional>
#include <string_view>

namespace tilewright {

/// Takes a prefix off a text; false, and nothing is taken, where the text begins otherwise.
bool take_prefix(std::string_view& text, std::string_view prefix);

/// Takes a decimal number from 1 on off the begin of a text.
std::optional<int> take_number(std::string_view& text);

}  // namespace tilewright
