#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace tilewright {

/// Threads that share out the items of a loop: a ThreadPool's, or those of a program that lends its
/// own (AttentionOptions::threads), which derives a class and writes size() and run_loop(). The
/// library then starts no threads for calls.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  /// Threads that a loop runs on, at least 1. May be called from any thread.
  virtual int size() const = 0;

  /// Calls body(item, worker) once for each item from 0 to items - 1, and returns when all are
  /// done. `worker` is from 0 to size() - 1, and no two bodies of one loop run with the same one at
  /// the same time. Each body computes in the default floating-point environment. A loop that is
  /// started inside a body runs on its thread alone.
  ///
  /// The first exception of a body is thrown here, once all running bodies have ended; items not
  /// yet started are dropped.
  /// @throws Error with code usage where run_loop() left items out, ran one twice, or passed a
  ///         worker that is out of range
  template <typename Body>
  void parallel_for(std::int64_t items, Body&& body) {
    using Function = std::remove_reference_t<Body>;
    start_loop(items, {[](void* function, std::int64_t item, int worker) {
                         (*static_cast<Function*>(function))(item, worker);
                       },
                       const_cast<void*>(static_cast<const void*>(std::addressof(body)))});
  }

 protected:
  /// A loop's body, not owned; std::function would allocate.
  struct LoopBody {
    void (*call)(void* context, std::int64_t item, int worker) = nullptr;
    void* context = nullptr;

    void operator()(std::int64_t item, int worker) const { call(context, item, worker); }
  };

  /// Calls body(item, worker) once for each item from 0 to items - 1, in any order, with `worker`
  /// as above, and returns when all calls have returned. `items` is at least 2. The body throws
  /// nothing. What run_loop() itself throws, parallel_for() throws.
  virtual void run_loop(std::int64_t items, LoopBody body) = 0;

 private:
  // What parallel_for does. ThreadPool has a faster form.
  virtual void start_loop(std::int64_t items, LoopBody body);
};

}  // namespace tilewright
