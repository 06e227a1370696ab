#pragma once

#include <atomic>
#include <string>

namespace tilewright {

/// A temporary file that is being written next to its final name, so that a program which is told
/// to end (SIGTERM, SIGINT, SIGHUP) can remove it first. At most 64 at a time are known.
class TemporaryFile {
 public:
  /// @param folder an open folder that outlives this object
  TemporaryFile(int folder, const std::string& name);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

 private:
  int slot_ = -1;
};

/// Removes the temporary files that this process is writing; their writers fail. Safe in a signal
/// handler. Meant for the end of the process: those that are begun afterwards are not known.
void remove_temporary_files() noexcept;

}  // namespace tilewright
