#include "cache/lock.hpp"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace tilewright::cache {
namespace {

constexpr int kOpenFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
constexpr int kMaxAttempts = 16;

bool still_has_its_name(const FileDescriptor& file, int folder, const std::string& name) {
  struct stat open_file {};
  struct stat named {};
  return ::fstat(file.get(), &open_file) == 0 &&
         ::fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

}  // namespace

KeyLock KeyLock::try_acquire(FileDescriptor folder, const Key& key,
                             const std::filesystem::path& path) {
  const std::string name = key.digest.hex().append(kLockSuffix);
  const auto because = [&](const char* what) {
    return unavailable(fmt::format("cannot {} \"{}\": {}", what, (path / name).native(),
                                   last_system_error().message()));
  };
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    FileDescriptor file(::openat(folder.get(), name.c_str(), kOpenFlags, 0600));
    if (!file) return because("create the lock file");
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return {};
      return because("lock");
    }
    if (!still_has_its_name(file, folder.get(), name)) continue;
    KeyLock lock;
    lock.state_ = State::held;
    lock.folder_ = std::move(folder);
    lock.file_ = std::move(file);
    lock.name_ = name;
    return lock;
  }
  return {};  // files come and go faster than we look: busy
}

KeyLock KeyLock::unavailable(std::string problem) {
  KeyLock lock;
  lock.state_ = State::unavailable;
  lock.problem_ = std::move(problem);
  return lock;
}

KeyLock::~KeyLock() {
  // Without its name the file locks no process out, even where a child that was forked meanwhile
  // keeps a copy of it open.
  if (file_) ::unlinkat(folder_.get(), name_.c_str(), 0);
}

}  // namespace tilewright::cache
