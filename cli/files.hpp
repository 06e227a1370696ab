#pragma once

#include <filesystem>
#include <string_view>

namespace tilewright::cli {

/// Notices before any work is done that a file could not be written at the end: no such folder, no
/// permission, or something in its place that is no file. An empty path asks for no file.
/// @param option the option that named it, for the message
/// @throws Error with code disk
void require_writable(const std::filesystem::path& path, std::string_view option);

}  // namespace tilewright::cli
