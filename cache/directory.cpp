#include "cache/directory.hpp"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include "base/error.hpp"

namespace tilewright::cache {
namespace {

constexpr mode_t kPrivateMode = 0700;

std::optional<std::filesystem::path> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<std::filesystem::path> home() {
  if (auto path = variable("HOME")) return path;
  std::vector<char> buffer(16 << 10);
  struct passwd record {};
  struct passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &record, buffer.data(), buffer.size(), &found) != 0) return {};
  if (found == nullptr || found->pw_dir == nullptr || *found->pw_dir == '\0') return {};
  return std::filesystem::path(found->pw_dir);
}

// A trailing slash would make O_NOFOLLOW look at the link's target.
std::filesystem::path without_trailing_slash(std::filesystem::path path) {
  while (!path.has_filename() && path.has_relative_path()) path = path.parent_path();
  return path;
}

std::error_code make_folders(const std::filesystem::path& path) {
  if (::mkdir(path.c_str(), kPrivateMode) == 0 || errno == EEXIST) return {};
  if (errno != ENOENT || !path.has_relative_path()) return last_system_error();
  if (const std::error_code error = make_folders(path.parent_path())) return error;
  if (::mkdir(path.c_str(), kPrivateMode) == 0 || errno == EEXIST) return {};
  return last_system_error();
}

std::string refusal(const FileDescriptor& folder) {
  struct stat status {};
  if (::fstat(folder.get(), &status) != 0) return last_system_error().message();
  if (status.st_uid != ::geteuid()) {
    return fmt::format("it belongs to user {}, not to user {}", status.st_uid, ::geteuid());
  }
  if ((status.st_mode & 022) != 0) {
    return fmt::format("others can write to it (mode {:04o}; chmod go-w it)",
                       status.st_mode & 07777);
  }
  return {};
}

std::string open_refusal(int parent, const std::string& name, const std::error_code& error) {
  struct stat status {};
  if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISLNK(status.st_mode)) return "it is a symbolic link; name what it points to instead";
    if (!S_ISDIR(status.st_mode)) return "it is not a directory";
  }
  return error.message();
}

PrivateFolder opened(int parent, const std::string& name, const std::filesystem::path& path,
                     const std::error_code& create_error) {
  PrivateFolder result;
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  FileDescriptor folder(::openat(parent, name.c_str(), kFlags));
  std::string why;
  if (!folder) {
    const std::error_code error = last_system_error();
    result.absent = error == std::errc::no_such_file_or_directory && !create_error;
    why = open_refusal(parent, name, create_error ? create_error : error);
  } else {
    why = refusal(folder);
  }
  if (result.absent) return result;
  if (why.empty()) {
    result.folder = std::move(folder);
  } else {
    result.problem = fmt::format("the directory \"{}\" cannot be used: {}", path.native(), why);
  }
  return result;
}

}  // namespace

std::optional<std::filesystem::path> default_directory() {
  if (::getuid() != ::geteuid() || ::getgid() != ::getegid()) return std::nullopt;
  if (auto path = variable("TILEWRIGHT_CACHE")) return path;
  if (auto path = variable("XDG_CACHE_HOME"); path && path->is_absolute()) {
    return *path / "tilewright";
  }
  if (auto path = home()) return *path / ".cache" / "tilewright";
  return std::nullopt;
}

std::uint64_t default_max_bytes() {
  constexpr std::uint64_t kDefault = std::uint64_t{4} << 30;
  const char* value = std::getenv("TILEWRIGHT_CACHE_MAX_SIZE");
  if (value == nullptr || *value == '\0') return kDefault;
  if (const auto bytes = parse_size(value)) return *bytes;
  throw Error(ErrorCode::usage, fmt::format("TILEWRIGHT_CACHE_MAX_SIZE is \"{}\"", value),
              "give a size, such as 500M or 2G, or 0 for no limit");
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  if (text.starts_with('-')) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number >= 0) || number > 1e18) return std::nullopt;
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  int shift = 0;
  if (!unit.empty() && unit != "B") {
    const std::size_t place = std::string_view("KMGT").find(unit[0]);
    if (place == std::string_view::npos) return std::nullopt;
    shift = 10 * static_cast<int>(place + 1);
    unit.remove_prefix(1);
    if (!unit.empty() && unit != "B" && unit != "iB") return std::nullopt;
  }
  const double bytes = std::ldexp(number, shift);
  if (bytes >= 9e18) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

PrivateFolder open_private_folder(const std::filesystem::path& path, IfAbsent if_absent) {
  const std::filesystem::path folder = without_trailing_slash(path);
  std::error_code error;
  if (if_absent == IfAbsent::create) error = make_folders(folder);
  return opened(AT_FDCWD, folder.native(), folder, error);
}

PrivateFolder open_private_folder(int parent, const std::string& name,
                                  const std::filesystem::path& path, IfAbsent if_absent) {
  std::error_code error;
  if (if_absent == IfAbsent::create && ::mkdirat(parent, name.c_str(), kPrivateMode) != 0 &&
      errno != EEXIST) {
    error = last_system_error();
  }
  return opened(parent, name, path, error);
}

}  // namespace tilewright::cache
