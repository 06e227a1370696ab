#pragma once

#include <cstdint>
#include <string_view>

#include "ast.hpp"

namespace tilewright::jinja {

/// Appends text between two tags to a block. A line `#include "name"` becomes a HeaderInclude, and
/// a line `#pragma once` is left out; `#include <name>` is text.
/// @param offset of the text in `source`
/// @return whether the text says `#pragma once`
/// @throws PlacedComplaint where an include shares its line or its name is malformed
bool append_text(const TemplateText& source, std::uint32_t offset, std::string_view text,
                 Block& block);

}  // namespace tilewright::jinja
