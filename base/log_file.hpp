#pragma once

#include <string>
#include <string_view>

namespace tilewright {

/// What $TILEWRIGHT_LOG asks for: "stderr" or a file, with ":debug" for more. Lines are appended,
/// each in one write, so that processes may share a file. Read once; ignored in a set-user-id
/// program, since another user may have set its environment.
class LogFile {
 public:
  /// @param value of the variable; null or empty: no log
  explicit LogFile(const char* value);
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  ~LogFile();

  /// The process's log, never destroyed.
  static const LogFile& of_process();

  bool is_open() const { return file_ >= 0; }
  bool has_debug() const { return is_open() && debug_; }
  /// Why the file could not be opened; empty where it could, or none is asked for.
  const std::string& problem() const { return problem_; }

  /// Appends time, process, level and text as one line. Control characters are escaped.
  void write(std::string_view level, std::string_view text) const noexcept;

 private:
  int file_ = -1;
  bool owns_file_ = false;
  bool debug_ = false;
  std::string problem_;
};

}  // namespace tilewright
