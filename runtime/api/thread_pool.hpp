#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace tilewright {

/// Threads that share out the items of a loop. A call neither allocates nor starts threads: workers
/// wait for the next call actively for a moment, then asleep.
class ThreadPool {
 public:
  /// `threads` counts the caller; below 1 is 1. Where the system refuses to start so many, size()
  /// says how many there are.
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  /// The process's pool, made on first use and never destroyed. Its size is TILEWRIGHT_THREADS,
  /// else the number of CPUs that this process may run on.
  /// @throws Error with code usage where TILEWRIGHT_THREADS is no number from 1 to 1024
  static ThreadPool& shared();
  /// The size that shared() has or would have.
  static int default_size();

  /// Threads that a call runs on, the caller's among them.
  int size() const;

  /// Calls body(item, worker) once for each item from 0 to items - 1, and returns when all are
  /// done. Items are handed out one at a time, in rising order. `worker` is from 0 to size() - 1,
  /// and no two bodies of one call run with the same one at the same time; the caller's thread is
  /// worker 0.
  ///
  /// Calls from several threads take turns. A call from inside a body, of this or another pool,
  /// runs on its thread alone, as does any call in a process that was forked from the pool's.
  ///
  /// The first exception of a body is thrown here, once all running bodies have ended; items not
  /// yet started are dropped.
  template <typename Body>
  void parallel_for(std::int64_t items, Body&& body) {
    using Function = std::remove_reference_t<Body>;
    run(items, {const_cast<void*>(static_cast<const void*>(std::addressof(body))),
                [](void* function, std::int64_t item, int worker) {
                  (*static_cast<Function*>(function))(item, worker);
                }});
  }

 private:
  /// A body, not owned. std::function would allocate.
  struct BodyRef {
    void* function = nullptr;
    void (*call)(void* function, std::int64_t item, int worker) = nullptr;
  };

  class Workers;

  void run(std::int64_t items, BodyRef body);

  std::unique_ptr<Workers> workers_;
};

}  // namespace tilewright
