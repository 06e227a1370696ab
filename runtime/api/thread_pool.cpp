#include "runtime/api/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.hpp"
#include "runtime/api/loop_scope.hpp"

namespace tilewright {
namespace {

// The gate counts the workers inside a call and has two flags. A worker enters only while the gate
// is open, so the caller never waits for one that is still waking up: it closes the gate when no
// items are left, and waits until those inside have left.
constexpr std::uint32_t kOpen = 1u << 31;
constexpr std::uint32_t kCallerSleeps = 1u << 30;
constexpr std::uint32_t kCount = kCallerSleeps - 1;

// Longer than the gap between two calls of a program that does little else, shorter than anybody
// would notice in its load.
constexpr std::chrono::microseconds kSpinTime(40);

constexpr int kMaxThreads = 1024;

std::atomic<unsigned> forks = 0;

void count_forks() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  });
}

void pause_processor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/// Spins until `done()`, at most kSpinTime.
template <typename Done>
bool spin_until(Done done) {
  const auto deadline = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      pause_processor();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return false;
}

// std::atomic::wait wakes one or all; a call with two items should wake one of a hundred.
void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  static_assert(sizeof word == sizeof value);
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void wake(const std::atomic<std::uint32_t>& word, std::int64_t count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, std::min<std::int64_t>(count, kMaxThreads), nullptr,
          nullptr, 0);
}

int available_cpus() {
  for (int cpus = CPU_SETSIZE; cpus <= 1 << 16; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    const std::size_t size = CPU_ALLOC_SIZE(cpus);
    const bool known = set && sched_getaffinity(0, size, set) == 0;
    const int count = known ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// While it lives, new threads start with signals blocked, so that an application's handlers run on
/// the application's own threads. What a thread raises itself stays open: the application's handler
/// for a division by zero is to run, and a blocked one would end the process.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int raised : {SIGFPE, SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGSYS}) {
      sigdelset(&all, raised);
    }
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

class ThreadPool::Workers {
 public:
  explicit Workers(int threads);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();

  int size() const { return static_cast<int>(threads_->size()) + 1; }
  bool has_this_thread() const;
  void run(std::int64_t items, LoopBody body);

 private:
  void run_alone(std::int64_t items, LoopBody body);
  void open(std::int64_t items, LoopBody body);
  void work(int worker) noexcept;
  void close() noexcept;
  bool enter() noexcept;
  void leave() noexcept;
  void worker_loop(int worker) noexcept;
  std::uint32_t wait_for_call(std::uint32_t seen) noexcept;
  bool is_forked() const;

  // Of the current call; written while the gate is closed and no worker is inside.
  LoopBody body_;
  std::int64_t items_ = 0;
  std::exception_ptr error_;
  std::atomic<bool> failed_ = false;

  // Each on its own cache line: all threads write to them.
  alignas(64) std::atomic<std::int64_t> next_item_ = 0;
  alignas(64) std::atomic<std::uint32_t> gate_ = 0;   // which workers are inside, see kOpen
  alignas(64) std::atomic<std::uint32_t> calls_ = 0;  // changes with each call
  std::atomic<std::uint32_t> sleepers_ = 0;
  std::atomic<bool> stopping_ = false;

  std::mutex turn_;  // held by the caller whose call is running
  bool may_spin_ = false;
  unsigned fork_generation_ = 0;
  std::unique_ptr<std::vector<std::thread>> threads_ = std::make_unique<std::vector<std::thread>>();
};

ThreadPool::Workers::Workers(int threads) {
  count_forks();
  fork_generation_ = forks.load();
  threads = std::clamp(threads, 1, kMaxThreads);
  // Spinning threads would take the time from those that work if there are more than CPUs.
  may_spin_ = threads <= available_cpus();
  threads_->reserve(static_cast<std::size_t>(threads - 1));
  const SignalsBlocked blocked;
  try {
    for (int worker = 1; worker < threads; ++worker) {
      threads_->emplace_back(&Workers::worker_loop, this, worker);
    }
  } catch (const std::exception&) {
    // Fewer threads than asked for still do the work.
  }
}

ThreadPool::Workers::~Workers() {
  if (is_forked()) {  // the threads are the parent's: there is nothing to join
    static_cast<void>(threads_.release());
    return;
  }
  stopping_.store(true);
  calls_.fetch_add(1);
  wake(calls_, kMaxThreads);
  for (std::thread& worker : *threads_) worker.join();
}

bool ThreadPool::Workers::has_this_thread() const {
  return std::any_of(threads_->begin(), threads_->end(), [](const std::thread& worker) {
    return worker.get_id() == std::this_thread::get_id();
  });
}

bool ThreadPool::Workers::is_forked() const {
  return fork_generation_ != forks.load(std::memory_order_relaxed);
}

void ThreadPool::Workers::run(std::int64_t items, LoopBody body) {
  if (items <= 1 || threads_->empty() || LoopScope::is_active() || is_forked()) {
    run_alone(items, body);
    return;
  }
  const std::lock_guard turn(turn_);
  open(items, body);
  work(0);
  close();
  body_ = {};
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::Workers::run_alone(std::int64_t items, LoopBody body) {
  const LoopScope scope;
  for (std::int64_t item = 0; item < items; ++item) body(item, 0);
}

void ThreadPool::Workers::open(std::int64_t items, LoopBody body) {
  body_ = body;
  items_ = items;
  failed_.store(false, std::memory_order_relaxed);
  next_item_.store(0, std::memory_order_relaxed);
  gate_.store(kOpen, std::memory_order_release);
  // Sequentially consistent, as in wait_for_call(): either the sleeper sees the new number, or it
  // is seen here.
  calls_.fetch_add(1);
  if (sleepers_.load() > 0) wake(calls_, items - 1);
}

void ThreadPool::Workers::work(int worker) noexcept {
  const LoopScope scope;
  try {
    for (;;) {
      const std::int64_t item = next_item_.fetch_add(1, std::memory_order_relaxed);
      if (item >= items_) return;
      body_(item, worker);
    }
  } catch (...) {
    if (!failed_.exchange(true)) error_ = std::current_exception();
    next_item_.store(items_, std::memory_order_relaxed);
  }
}

void ThreadPool::Workers::close() noexcept {
  std::uint32_t gate = gate_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
  const auto is_empty = [&] {
    gate = gate_.load(std::memory_order_acquire);
    return gate == 0;
  };
  if (is_empty() || (may_spin_ && spin_until(is_empty))) return;
  gate = gate_.fetch_or(kCallerSleeps, std::memory_order_acq_rel) | kCallerSleeps;
  while (gate & kCount) {
    sleep_while(gate_, gate);
    gate = gate_.load(std::memory_order_acquire);
  }
}

bool ThreadPool::Workers::enter() noexcept {
  std::uint32_t gate = gate_.load(std::memory_order_relaxed);
  while (gate & kOpen) {
    if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acquire)) return true;
  }
  return false;
}

void ThreadPool::Workers::leave() noexcept {
  const std::uint32_t gate = gate_.fetch_sub(1, std::memory_order_release);
  if (gate == (kCallerSleeps | 1)) wake(gate_, 1);
}

void ThreadPool::Workers::worker_loop(int worker) noexcept {
  pthread_setname_np(pthread_self(), "tilewright");
  std::uint32_t seen = 0;
  for (;;) {
    seen = wait_for_call(seen);
    if (stopping_.load()) return;
    if (!enter()) continue;
    work(worker);
    leave();
  }
}

std::uint32_t ThreadPool::Workers::wait_for_call(std::uint32_t seen) noexcept {
  const auto has_changed = [&] { return calls_.load() != seen; };
  if (may_spin_ && spin_until(has_changed)) return calls_.load();
  sleepers_.fetch_add(1);
  while (!has_changed()) sleep_while(calls_, seen);
  sleepers_.fetch_sub(1);
  return calls_.load();
}

ThreadPool::ThreadPool(int threads) : workers_(std::make_unique<Workers>(threads)) {}

ThreadPool::~ThreadPool() {
  // A body that calls exit() destroys static pools on one of the pools' threads, while the loop's
  // caller waits for that body: what it waits with stays.
  if (workers_->has_this_thread()) static_cast<void>(workers_.release());
}

ThreadPool& ThreadPool::shared() {
  // Never destroyed: other static objects may use it while the process ends.
  static ThreadPool* const pool = new ThreadPool(default_size());
  return *pool;
}

int ThreadPool::default_size() {
  const char* value = std::getenv("TILEWRIGHT_THREADS");
  if (!value || !*value) return available_cpus();
  const std::string_view text = value;
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc() || end != text.data() + text.size() || threads < 1 ||
      threads > kMaxThreads) {
    throw Error(ErrorCode::usage, fmt::format("TILEWRIGHT_THREADS is \"{}\"", text),
                fmt::format("give a number of threads from 1 to {}, or unset it for one per CPU",
                            kMaxThreads));
  }
  return threads;
}

int ThreadPool::size() const {
  return workers_->size();
}

void ThreadPool::run_loop(std::int64_t items, LoopBody body) {
  workers_->run(items, body);
}

void ThreadPool::start_loop(std::int64_t items, LoopBody body) {
  workers_->run(items, body);
}

}  // namespace tilewright
