#pragma once

#include <cstdint>
#include <memory>

#include "executor.hpp"

namespace tilewright {

/// Threads that share out the items of a loop. A call neither allocates nor starts threads: workers
/// wait for the next call actively for a moment, then asleep.
class ThreadPool final : public Executor {
 public:
  /// `threads` counts the caller; below 1 is 1. Where the system refuses to start so many, size()
  /// says how many there are.
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool() override;

  /// The process's pool, made on first use and never destroyed. Its size is TILEWRIGHT_THREADS,
  /// else the number of CPUs that this process may run on.
  /// @throws Error with code usage where TILEWRIGHT_THREADS is no number from 1 to 1024
  static ThreadPool& shared();
  /// The size that shared() has or would have.
  static int default_size();

  /// Threads that a loop runs on, the caller's among them.
  ///
  /// Items are handed out one at a time, in rising order; the caller's thread is worker 0. Loops
  /// from several threads take turns. A loop in a process that was forked from the pool's runs on
  /// its thread alone.
  int size() const override;

 private:
  class Workers;

  void run_loop(std::int64_t items, LoopBody body) override;
  void start_loop(std::int64_t items, LoopBody body) override;

  std::unique_ptr<Workers> workers_;
};

}  // namespace tilewright
