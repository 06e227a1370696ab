#pragma once

#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::cli {

/// Notices before any work is done that a file could not be written at the end: no such folder, no
/// permission, something in its place that is no file, or a file that the same command reads. An
/// empty path asks for no file. A character device, a FIFO and /dev/stdout serve; where the output
/// goes to stdout, reports go to stderr from now on.
/// @param option the option that named it, for the message
/// @param read what the command reads; an empty path and one where nothing is are no file
/// @throws Error with code disk, with code usage for a file that is read
void require_writable(const std::filesystem::path& path, std::string_view option,
                      const std::vector<std::filesystem::path>& read = {});

/// Notices that a folder of results could not be made, or not be written to.
/// @throws Error with code disk
void require_folder(const std::filesystem::path& path, std::string_view option);

/// Makes a folder of results, and those above it.
/// @throws Error as require_folder
void make_folder(const std::filesystem::path& path, std::string_view option);

/// Refuses one file for two outputs. Empty paths and streams (/dev/null) may come twice.
/// @param outputs each output's option and path
/// @throws Error with code usage
void require_distinct(
    const std::vector<std::pair<std::string_view, std::filesystem::path>>& outputs);

}  // namespace tilewright::cli
