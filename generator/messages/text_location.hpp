#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "../../base/error.hpp"

namespace tilewright {

/// The place of one byte of a text, with that line as excerpt. An offset past the end is the end.
/// Bytes that a terminal must not see are shown as `?`; a line too long to show has no excerpt.
SourceLocation place_at(std::string_view file, std::string_view text, std::size_t offset);

/// The place of a line and a column (both from 1; column 0 is the whole line) of a text.
SourceLocation place_at_line(std::string_view file, std::string_view text, int line, int column);

/// Offset of the first byte that is not part of well-formed UTF-8 (no surrogates, no overlong
/// forms).
std::optional<std::size_t> first_malformed_utf8(std::string_view text);

/// Offset of the first character that is invisible or turns the direction of writing, and so makes
/// source read differently than it compiles. The text must be well-formed UTF-8.
std::optional<std::size_t> first_deceptive_character(std::string_view text);

/// A value as messages show it: at most `max_bytes`, control characters as `?`, "..." where cut.
std::string printable(std::string_view text, std::size_t max_bytes = 60);

}  // namespace tilewright
