#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace tilewright::cli {

/// Notices before any work is done that a file could not be written at the end: no such folder, no
/// permission, something in its place that is no file, or a file that the same command reads. An
/// empty path asks for no file.
/// @param option the option that named it, for the message
/// @param read what the command reads; an empty path and one where nothing is are no file
/// @throws Error with code disk, with code usage for a file that is read
void require_writable(const std::filesystem::path& path, std::string_view option,
                      const std::vector<std::filesystem::path>& read = {});

}  // namespace tilewright::cli
