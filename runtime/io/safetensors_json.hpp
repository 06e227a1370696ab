#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "safetensors_header.hpp"

namespace tilewright {

/// Reads the JSON of a safetensors header in one pass, in time linear in its length. Entries come
/// in the order of the text; sizes, ranges and overlaps are not checked yet.
///
/// The verdict is the format's: the text begins with '{', only white space follows the object,
/// every string is UTF-8, a key comes once, a tensor has "dtype", "shape" and "data_offsets" once
/// each. Other members of a tensor are skipped, whatever they hold, up to 127 levels deep.
/// @param fail throws the error that its first argument describes; the second is a hint, or empty
SafetensorsHeader parse_safetensors_json(
    std::string_view text,
    const std::function<void(const std::string& why, const std::string& hint)>& fail);

/// A name as JSON has it, at most 200 bytes of it: whatever it holds, the message stays one line.
std::string quoted_name(const std::string& text);

}  // namespace tilewright
