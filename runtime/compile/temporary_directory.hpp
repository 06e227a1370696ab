#pragma once

#include <filesystem>
#include <string_view>

#include "../../base/file_io.hpp"

namespace tilewright {

/// A directory that only this user can enter (mode 0700), below TMPDIR or /tmp. It is removed with
/// all it holds when the object goes; what a killed process left, by the next one for the same
/// purpose that is made an hour later.
class TemporaryDirectory {
 public:
  /// @param purpose part of the directory's name: "tilewright-<purpose>-XXXXXX"
  /// @throws Error with code disk where none can be made
  explicit TemporaryDirectory(std::string_view purpose);
  TemporaryDirectory(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
  ~TemporaryDirectory();

  const std::filesystem::path& path() const { return path_; }

 private:
  void remove() noexcept;
  std::filesystem::path path_;
  FileDescriptor lock_;  // shared; a locked directory is never taken for abandoned
};

}  // namespace tilewright
