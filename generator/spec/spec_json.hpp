#pragma once

#include <string>
#include <string_view>

#include "spec.hpp"

namespace tilewright {

/// Reads a JSON spec and validates it. Strict: an unknown key, a reserved one, a duplicate one, a
/// value of the wrong type or out of range is an error that names the key, the value, what is
/// allowed and the nearest right name, with line and column in `text`.
/// @param file_name what the text is called in messages
/// @throws Error with code spec or snippet
Spec spec_from_json(std::string_view text, std::string_view file_name = "spec");

/// Reads and parses a file.
/// @throws Error with code file where it cannot be read, else as spec_from_json
Spec spec_from_file(const std::string& path);

/// The spec as JSON, two spaces of indentation, keys in the order of docs/spec.md, defaults left
/// out. spec_from_json(to_json(spec)) == spec.
std::string to_json(const Spec& spec);

}  // namespace tilewright
