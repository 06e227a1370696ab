#pragma once

#include <string>

#include "cli/verb.hpp"

namespace tilewright::cli {

/// Prints what a bundle holds, an entry a line: kernel, target, spec, size.
/// @throws Error with code file where the bundle must not be used
void list_bundle(const std::string& path, bool json);

/// Reads a bundle whole and prints what is wrong with it: its header, signature and index, then the
/// digest of each entry. Where TILEWRIGHT_BUNDLE_KEY names keys, one of them must have signed it.
/// @return kNegativeVerdict where anything is wrong
/// @throws Error with code file where there is no file to read
ExitStatus verify_bundle(const std::string& path, bool json);

}  // namespace tilewright::cli
