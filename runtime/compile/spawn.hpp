#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "../../base/error.hpp"

namespace tilewright {

/// Changes to this process's environment; no value: the variable is removed.
using EnvironmentChanges = std::vector<std::pair<std::string, std::optional<std::string>>>;

/// What a new program is connected to.
struct SpawnOptions {
  std::filesystem::path directory = {};  ///< its working directory; empty: this process's own
  EnvironmentChanges environment = {};
  int input = -1;            ///< becomes its stdin; -1: empty
  int output = -1;           ///< becomes its stdout; -1: dropped
  int errors = -1;           ///< becomes its stderr; -1: dropped
  bool new_session = false;  ///< of which it is the leader; else a separate process group
  ErrorCode error_code = ErrorCode::compiler;
};

/// Starts a program without a shell, in a separate process group, with default signal handling;
/// no other file descriptor of this process is handed on. Descriptors below 3 must not be given.
/// @param arguments the program and its arguments; a name without '/' is looked up in PATH
/// @throws Error with options.error_code where it cannot be started
pid_t spawn(const std::vector<std::string>& arguments, const SpawnOptions& options);

/// The error for a program that cannot be started, with advice for this errno.
Error cannot_start(const std::string& program, ErrorCode code, int error);

}  // namespace tilewright
