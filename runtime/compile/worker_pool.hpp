#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "worker_protocol.hpp"

namespace tilewright {

/// Where the executable is that compiles for this process.
struct WorkerLocation {
  std::filesystem::path program;  ///< empty: compile in this process
  bool is_given = false;          ///< by TILEWRIGHT_WORKER
  std::string reason;             ///< why there is none, or how it was found
};

/// TILEWRIGHT_WORKER names it, or is `off`. Else the first of these: this program, if it is called
/// tilewright; `tilewright` next to this library or program, in ../bin or ../../bin from there,
/// where it was to be installed, and in PATH.
WorkerLocation find_worker();

/// Processes that compile for this one, so that a bomb, a crash or a hang of a compiler is an error
/// here and no more. Each serves one compile at a time and is kept for the next; one that dies is
/// replaced. Safe to use from many threads; a child made by fork() starts its own workers.
class WorkerPool {
 public:
  WorkerPool(std::filesystem::path program, std::size_t most_workers);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool();

  /// The pool of find_worker(), shared by the process, as many workers as processors; null where
  /// there is no worker, or what was found is none.
  static WorkerPool* shared();

  /// Waits for a worker that is free, or starts one. Throws what the compiler threw.
  /// @param what for messages: "forward for sm_90a"
  /// @throws Error with code compiler where a limit was reached, or the compiler crashed
  WorkerResponse run(const WorkerRequest& request, const std::string& what);

  /// Starts workers in advance, up to `count` idle ones, so that starting costs no time later.
  void warm_up(std::size_t count);

  /// Process ids of the idle workers.
  std::vector<pid_t> idle_workers();

 private:
  class Worker;

  void note_silent(const Error& problem);
  void refuse_if_silent();
  std::unique_ptr<Worker> take(const WorkerRequest& request);
  void give_back(std::unique_ptr<Worker> worker);  // null: it is gone
  void forget_workers_of_parent();

  const std::filesystem::path program_;
  const std::size_t most_workers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Worker>> idle_;
  std::size_t busy_ = 0;
  pid_t process_;
  std::optional<Error> silent_;  // the program did not greet
  std::chrono::steady_clock::time_point silent_until_{};
};

/// Whether compiles run in a worker, tried by starting one.
struct WorkerFacts {
  bool isolates = false;  ///< false: compiles run in this process
  WorkerLocation location;
  std::string problem;  ///< why what was found cannot be used
};
WorkerFacts examine_worker();

/// run() in the shared pool, or nothing where there is none: compile in this process then.
std::optional<WorkerResponse> run_in_worker(const WorkerRequest& request, const std::string& what);

/// This process's environment, as a request carries it.
std::vector<std::string> current_environment();

}  // namespace tilewright
