#pragma once

#include <string>

#include "../base/file_io.hpp"
#include "key.hpp"

namespace tilewright::cache {

/// The right to build one key, held by one thread of one process at a time: flock(2) on a file of
/// that key. The kernel frees it when its holder dies, however it dies.
///
/// A lock file lives only as long as a thread holds or waits for it: the holder removes it before
/// releasing it. The next holder then looks whether the file still has its name, because otherwise
/// no other process can see the lock, and tries again.
class KeyLock {
 public:
  enum class State {
    held,
    busy,         ///< another thread or process holds it
    unavailable,  ///< there can be no lock here (read-only, no flock); `problem` says why
  };

  /// Tries once, without waiting. `folder` is the open folder of lock files; `path` names it in
  /// messages.
  static KeyLock try_acquire(FileDescriptor folder, const Key& key,
                             const std::filesystem::path& path);
  static KeyLock unavailable(std::string problem);

  KeyLock(KeyLock&&) noexcept = default;
  KeyLock& operator=(KeyLock&&) = delete;
  ~KeyLock();

  State state() const { return state_; }
  const std::string& problem() const { return problem_; }

 private:
  KeyLock() = default;

  State state_ = State::busy;
  FileDescriptor folder_;
  FileDescriptor file_;
  std::string name_;
  std::string problem_;
};

/// The ending of a lock file's name; before it stands the key in hexadecimal.
inline constexpr std::string_view kLockSuffix = ".lock";

}  // namespace tilewright::cache
