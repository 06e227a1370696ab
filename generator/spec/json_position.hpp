#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "validate.hpp"

namespace tilewright {

inline constexpr std::size_t kMaxSpecBytes = std::size_t{1024} * 1024;
inline constexpr int kMaxSpecNesting = 32;

/// Where one value of a JSON text stands, and its key where it has one.
struct JsonNode {
  std::string step;  ///< the key as it is written, or "[2]"; empty at the top
  std::size_t key_offset = 0;
  std::size_t value_offset = 0;
  std::vector<JsonNode> children;
};

/// Refuses what must not reach a JSON parser: too long or too deeply nested a text, malformed
/// UTF-8, NUL, numbers that no double can hold.
/// @throws Error with code spec, with line and column
void check_json_text(std::string_view text, std::string_view file_name);

/// Finds every key and value of a text that a JSON parser has accepted.
/// @throws Error with code spec for a key that occurs twice or holds an escape
JsonNode locate_json(std::string_view text, std::string_view file_name);

/// The offset to point at: of the value at `path`, or of its key; the deepest one there is of it.
std::size_t offset_of(const JsonNode& root, const SpecPath& path, bool of_key);

}  // namespace tilewright
