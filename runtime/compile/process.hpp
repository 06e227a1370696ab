#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "../../base/error.hpp"
#include "spawn.hpp"

namespace tilewright {

/// How a program is started.
struct ProcessOptions {
  std::filesystem::path directory;  ///< the program's working directory; empty: this process's own
  EnvironmentChanges environment;
  std::chrono::milliseconds timeout{120'000};  ///< then the program and its children are killed
  std::size_t output_limit = 4 << 20;          ///< bytes kept of each stream; the rest is dropped
  ErrorCode error_code = ErrorCode::compiler;  ///< of the Error thrown if it cannot be started
};

/// How a program ended, and what it said.
struct ProcessResult {
  std::optional<int> exit_status;  ///< empty if a signal ended it, or if unknown (see below)
  std::optional<int> signal;       ///< the signal that ended it
  bool timed_out = false;          ///< it was killed because it took too long
  bool truncated = false;          ///< it wrote more than was kept
  std::string output;              ///< what it wrote to stdout
  std::string errors;              ///< what it wrote to stderr
  double milliseconds = 0;

  bool succeeded() const { return exit_status == 0; }
  /// "exit status 1", "signal 11 (Segmentation fault)", "killed after 120 s"
  std::string describe_end() const;
};

/// Runs a program to its end, without a shell. stdin is empty; no file descriptor of this process
/// is handed on; the child starts with default signal handling, in a separate process group.
/// Where this process ignores SIGCHLD or reaps all children itself, neither exit status nor signal
/// is known. May be called from many threads at once.
///
/// @param arguments the program and its arguments; a name without '/' is looked up in PATH
/// @throws Error with options.error_code where the program cannot be started
ProcessResult run_process(const std::vector<std::string>& arguments,
                          const ProcessOptions& options = {});

}  // namespace tilewright
