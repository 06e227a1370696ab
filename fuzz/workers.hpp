#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "case.hpp"
#include "outcome.hpp"
#include "run_case.hpp"

namespace tilewright::verify::fuzz {

/// Processes that run cases, each on one thread: what a kernel does to its process, a crash or an
/// endless loop, is an outcome like any other. They are forked, so they must be made before this
/// process starts threads or touches a GPU.
class Workers {
 public:
  struct Options {
    RunOptions run = {};  ///< without a store each process keeps its kernels in memory
    int count = 1;
    std::chrono::seconds time_limit{120};  ///< of one case, its compiles included
    /// When a case counts as late: what it does is reported then, and it goes on.
    std::chrono::seconds late_after{30};
    /// Hears of a late case: the case, its kernels, the stack of each of its threads and what they
    /// do, and every process that works for it, a compiler's or a compile worker's among them.
    std::function<void(const std::string& report)> late = {};
  };

  struct Finished {
    FuzzCase fuzz_case;
    Outcome outcome;
  };

  /// @throws Error with code internal where no process can be started
  explicit Workers(Options options);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  /// Ends the processes, whatever they are doing.
  ~Workers();

  /// Processes without work.
  std::size_t idle() const;
  /// Cases that were submitted and are not finished.
  std::size_t pending() const;

  /// Hands cases to an idle process, which runs them in this order; those of one spec share its
  /// kernels.
  /// @throws Error with code internal where no process is idle
  void submit(std::vector<FuzzCase> cases);

  /// Forgets the cases that no process has begun.
  void drop_waiting();

  /// The next case that is finished; nothing where none is within `patience`.
  std::optional<Finished> wait(std::chrono::milliseconds patience);

 private:
  struct Worker;
  void start(Worker& worker);
  void send_next(Worker& worker);
  Finished take(Worker& worker);
  Finished stop(Worker& worker);
  void report_late(Worker& worker);
  Finished give_up(Worker& worker, Failure failure, std::string message);
  static int end(Worker& worker);

  Options options_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

/// Runs one case in a separate process.
Outcome run_isolated(const FuzzCase& fuzz_case, const RunOptions& options = {},
                     std::chrono::seconds time_limit = std::chrono::seconds(120));

}  // namespace tilewright::verify::fuzz
