#include "runtime/api/executor.hpp"

#include <algorithm>
#include <atomic>
#include <exception>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/api/loop_scope.hpp"

namespace tilewright {
namespace {

// Errors of an executor that a program wrote.
constexpr const char* kExecutorHint =
    "run_loop() calls the body once for each item, with a worker from 0 to size() - 1, and returns "
    "when all calls have returned";

// One loop on threads of the program.
class LentLoop {
 public:
  LentLoop(std::int64_t items, int workers) : items_(items), workers_(workers) {}

  template <typename Body>
  void run(const Body& body, std::int64_t item, int worker) noexcept {
    runs_.fetch_add(1, std::memory_order_relaxed);
    if (failed_.load(std::memory_order_relaxed)) return;
    try {
      require_in_range(item, worker);
      const LoopScope scope;
      body(item, worker);
    } catch (...) {
      if (!failed_.exchange(true)) error_ = std::current_exception();
    }
  }

  void finish() const {
    if (error_) std::rethrow_exception(error_);
    const std::int64_t runs = runs_.load(std::memory_order_relaxed);
    if (runs == items_) return;
    throw Error(ErrorCode::usage,
                fmt::format("the executor ran {} of a loop's {} items", runs, items_),
                kExecutorHint);
  }

 private:
  void require_in_range(std::int64_t item, int worker) const {
    if (item >= 0 && item < items_ && worker >= 0 && worker < workers_) return;
    throw Error(ErrorCode::usage,
                fmt::format("the executor ran item {} of {} as worker {} of {}", item, items_,
                            worker, workers_),
                kExecutorHint);
  }

  std::int64_t items_;
  int workers_;
  std::atomic<std::int64_t> runs_ = 0;
  std::atomic<bool> failed_ = false;
  std::exception_ptr error_;
};

}  // namespace

void Executor::start_loop(std::int64_t items, LoopBody body) {
  const int workers = std::max(1, size());
  if (items <= 1 || workers == 1 || LoopScope::is_active()) {
    const LoopScope scope;
    for (std::int64_t item = 0; item < items; ++item) body(item, 0);
    return;
  }
  struct Context {
    LoopBody body;
    LentLoop loop;
  } context{body, {items, workers}};
  run_loop(items, {[](void* given, std::int64_t item, int worker) {
                     auto& of_loop = *static_cast<Context*>(given);
                     of_loop.loop.run(of_loop.body, item, worker);
                   },
                   &context});
  context.loop.finish();
}

}  // namespace tilewright
