#include "runtime/compile/temporary_directory.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"

namespace tilewright {
namespace {

constexpr std::time_t kLeftBehindSeconds = 3600;

std::string parent_directory() {
  const char* chosen = std::getenv("TMPDIR");
  return chosen && *chosen ? chosen : "/tmp";
}

// A flock of the directory itself, which goes with the process; nothing where it cannot be had.
FileDescriptor locked(const std::string& path, int operation) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  FileDescriptor folder(::open(path.c_str(), kFlags));
  if (folder && ::flock(folder.get(), operation | LOCK_NB) != 0) return {};
  return folder;
}

bool is_left_behind(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() &&
         status.st_mtim.tv_sec < std::time(nullptr) - kLeftBehindSeconds && locked(path, LOCK_EX);
}

void sweep(const std::string& parent, const std::string& prefix) {
  const FileDescriptor folder(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::vector<std::string> names;
  if (!folder || list_folder(folder.get(), names)) return;
  for (const std::string& name : names) {
    const std::string path = fmt::format("{}/{}", parent, name);
    const bool is_named = name.starts_with(prefix) && name.size() == prefix.size() + 6;
    std::error_code ignored;
    if (is_named && is_left_behind(path)) std::filesystem::remove_all(path, ignored);
  }
}

}  // namespace

TemporaryDirectory::TemporaryDirectory(std::string_view purpose) {
  const std::string prefix = fmt::format("tilewright-{}-", purpose);
  sweep(parent_directory(), prefix);
  std::string name = fmt::format("{}/{}XXXXXX", parent_directory(), prefix);
  if (!mkdtemp(name.data())) {
    throw Error(ErrorCode::disk,
                fmt::format("cannot make a temporary directory in {}: {}", parent_directory(),
                            std::strerror(errno)),
                "set TMPDIR to a directory that can be written to and has free space");
  }
  std::error_code ignored;  // absolute, so that a later chdir does not lose it
  path_ = std::filesystem::absolute(name, ignored);
  if (ignored) path_ = name;
  lock_ = locked(name, LOCK_SH);
}

TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

TemporaryDirectory& TemporaryDirectory::operator=(TemporaryDirectory&& other) noexcept {
  if (this != &other) {
    remove();
    path_ = std::exchange(other.path_, {});
    lock_ = std::move(other.lock_);
  }
  return *this;
}

TemporaryDirectory::~TemporaryDirectory() {
  remove();
}

void TemporaryDirectory::remove() noexcept {
  std::error_code ignored;  // a leftover in /tmp is no reason to fail what was done in it
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  path_.clear();
  static_cast<void>(lock_.close());
}

}  // namespace tilewright
