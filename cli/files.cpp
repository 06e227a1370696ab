#include "cli/files.hpp"

#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.hpp"

namespace tilewright::cli {

namespace fs = std::filesystem;

void require_writable(const fs::path& path, std::string_view option,
                      const std::vector<fs::path>& read) {
  if (path.empty()) return;
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    throw Error(ErrorCode::disk,
                fmt::format("{} \"{}\" cannot be written: {}", option, path.string(), why), hint);
  };
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) refuse("it is a folder", "name a file");
  if (fs::exists(status) && !fs::is_regular_file(status)) refuse("it is no file", "name a file");
  if (!fs::is_directory(folder, ignored)) {
    refuse(fmt::format("there is no folder \"{}\"", folder.string()), "make the folder first");
  }
  for (const fs::path& other : read) {
    if (!fs::equivalent(path, other, ignored)) continue;
    throw Error(ErrorCode::usage,
                fmt::format("{} \"{}\" is a file that this command reads", option, path.string()),
                "name another file, as this one would be lost");
  }
  // The new contents are renamed into place, so it is the folder that must be writable.
  if (::access(folder.c_str(), W_OK) != 0) {
    refuse(std::strerror(errno), fmt::format("choose a folder that you may write to"));
  }
}

}  // namespace tilewright::cli
