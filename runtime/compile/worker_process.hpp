#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "../../base/file_io.hpp"
#include "worker_protocol.hpp"

namespace tilewright {

/// Thrown where a program cannot be started or does not greet as a worker.
class NoWorker {
 public:
  explicit NoWorker(Error error, bool is_silent = false)
      : error_(std::move(error)), is_silent_(is_silent) {}
  const Error& error() const { return error_; }
  /// Whether the program was started and did not greet in time.
  bool is_silent() const { return is_silent_; }

 private:
  Error error_;
  bool is_silent_;
};

/// One worker. Used by one thread at a time.
class WorkerProcess {
 public:
  /// Starts `program`. Does not wait for it.
  /// @throws NoWorker where it cannot be started
  explicit WorkerProcess(const std::filesystem::path& program);
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess();  ///< ends it

  /// Its answer; nothing where it had ended before, which only happens to one that `was_idle`.
  /// After anything but an answer the worker is of no more use.
  /// @param what for messages: "forward for sm_90a"
  /// @throws LimitReached with code compiler, also for a crash: limits of memory end in many ways
  /// @throws NoWorker where the program is no worker, or one of another version
  std::optional<WorkerResponse> ask(const WorkerRequest& request, const std::string& what,
                                    bool was_idle);

  pid_t id() const { return id_; }
  /// It is another process's child: leaves it alone.
  void disown() { id_ = -1; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Outcome { done, ended, late, too_long };

  Outcome send(const std::vector<std::byte>& frame, Clock::time_point deadline);
  Outcome receive(std::size_t size, Clock::time_point deadline, std::vector<std::byte>& into);
  Outcome wait_until(short events, Clock::time_point deadline);
  void drain_errors();
  bool has_ended() const;
  Outcome greet(Clock::time_point deadline);
  [[noreturn]] void fail(Outcome outcome, const WorkerRequest& request, const std::string& what);
  void end(bool at_once);

  std::filesystem::path program_;
  pid_t id_ = -1;
  FileDescriptor socket_;
  FileDescriptor errors_;
  std::string said_;  // on stderr
  bool has_greeted_ = false;
  bool is_compiling_ = false;
  std::optional<int> exit_status_;
  std::optional<int> signal_;
};

}  // namespace tilewright
