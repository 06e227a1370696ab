#include "cli/files.hpp"

#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "cli/output.hpp"

namespace tilewright::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(std::string_view option, const fs::path& path, const std::string& why,
                         const std::string& hint) {
  throw Error(ErrorCode::disk,
              fmt::format("{} \"{}\" cannot be written: {}", option, path.string(), why), hint);
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

bool is_standard_output(const fs::path& path) {
  struct stat given {
  }, own{};
  return ::stat(path.c_str(), &given) == 0 && ::fstat(STDOUT_FILENO, &own) == 0 &&
         given.st_dev == own.st_dev && given.st_ino == own.st_ino;
}

void require_writable_stream(const fs::path& path, std::string_view option) {
  if (::access(path.c_str(), W_OK) != 0) {
    refuse(option, path, std::strerror(errno), "choose one that you may write to");
  }
  if (is_standard_output(path)) report_to_stderr();
}

// A file that is not there yet is where its folder says.
fs::path whole_path(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  const fs::path canonical = fs::weakly_canonical(whole, error);
  return error ? whole.lexically_normal() : canonical;
}

}  // namespace

void require_writable(const fs::path& path, std::string_view option,
                      const std::vector<fs::path>& read) {
  if (path.empty()) return;
  if (path.native().find('\0') != std::string::npos) refuse(option, path, "it has a NUL byte", "");
  if (is_stream(path)) return require_writable_stream(path, option);
  const fs::path folder = folder_of(path);
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status) || !path.has_filename()) {
    refuse(option, path, "it is a folder", "name a file");
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    refuse(option, path, "it is neither a file nor a pipe", "name a file");
  }
  if (!fs::exists(status) && fs::is_symlink(fs::symlink_status(path, ignored))) {
    refuse(option, path, "it is a symbolic link to nothing",
           "remove the link, or create what it points to");
  }
  if (!fs::is_directory(folder, ignored)) {
    refuse(option, path, fmt::format("there is no folder \"{}\"", folder.string()),
           "make the folder first");
  }
  for (const fs::path& other : read) {
    if (!fs::equivalent(path, other, ignored)) continue;
    throw Error(ErrorCode::usage,
                fmt::format("{} \"{}\" is a file that this command reads", option, path.string()),
                "name another file, as this one would be lost");
  }
  // The new contents are renamed into place, so it is the folder that must be writable: of a link,
  // the folder that it leads to.
  const fs::path target = fs::exists(status) ? fs::canonical(path, ignored) : path;
  const fs::path target_folder = folder_of(target);
  if (::access(target_folder.c_str(), W_OK | X_OK) != 0) {
    refuse(option, path, std::strerror(errno), std::string(kWritableFolderHint));
  }
  constexpr std::size_t kMostName = 255;  // NAME_MAX
  if (path.filename().native().size() > kMostName) {
    refuse(option, path, std::strerror(ENAMETOOLONG), "name it with at most 255 bytes");
  }
}

void require_folder(const fs::path& path, std::string_view option) {
  fs::path there = path;
  std::error_code ignored;
  while (!fs::exists(there, ignored) && there.has_relative_path()) {
    there = there.has_filename() && !there.has_parent_path() ? fs::path(".") : there.parent_path();
  }
  if (!fs::is_directory(there, ignored)) {
    refuse(option, path, fmt::format("\"{}\" is not a folder", there.string()), "name a folder");
  }
  if (::access(there.c_str(), W_OK | X_OK) != 0) {
    refuse(option, path, std::strerror(errno), std::string(kWritableFolderHint));
  }
}

void make_folder(const fs::path& path, std::string_view option) {
  require_folder(path, option);
  std::error_code failure;
  fs::create_directories(path, failure);
  if (failure) refuse(option, path, failure.message(), std::string(kWritableFolderHint));
}

void require_distinct(const std::vector<std::pair<std::string_view, fs::path>>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const auto& [option, path] = outputs[i];
      const auto& [other_option, other] = outputs[j];
      if (path.empty() || other.empty() || is_stream(path)) continue;
      std::error_code ignored;
      if (whole_path(path) != whole_path(other) && !fs::equivalent(path, other, ignored)) continue;
      throw Error(
          ErrorCode::usage,
          fmt::format("{} and {} are the same file, \"{}\"", other_option, option, path.string()),
          "name two files, as one would replace the other");
    }
  }
}

}  // namespace tilewright::cli
