#include "runtime/api/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

/// How often each item was run in one call.
std::vector<int> runs_of(ThreadPool& pool, std::int64_t items) {
  std::vector<int> runs(static_cast<std::size_t>(std::max<std::int64_t>(items, 0)), 0);
  pool.parallel_for(items, [&](std::int64_t item, int) { ++runs[static_cast<std::size_t>(item)]; });
  return runs;
}

bool all_once(const std::vector<int>& runs) {
  return std::all_of(runs.begin(), runs.end(), [](int n) { return n == 1; });
}

void nap(int microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

}  // namespace

TEST_CASE("thread pool: every item is run once, for any number of threads and items") {
  for (int threads : {0, 1, 2, 3, 8, 33}) {
    ThreadPool pool(threads);
    CHECK(pool.size() == std::max(1, threads));
    for (std::int64_t items : {-1, 0, 1, 2, 7, 1000}) {
      for (int round = 0; round < 20; ++round) REQUIRE(all_once(runs_of(pool, items)));
    }
  }
}

TEST_CASE("thread pool: items are handed out in rising order, to more than one thread") {
  ThreadPool pool(4);
  std::atomic<int> inside = 0;
  std::atomic<bool> met = false;
  std::vector<std::vector<std::int64_t>> seen(4);
  nap(20000);  // until the workers have fallen asleep
  pool.parallel_for(64, [&](std::int64_t item, int worker) {
    seen[static_cast<std::size_t>(worker)].push_back(item);
    if (inside.fetch_add(1) + 1 >= 2) met = true;
    // No thread goes on alone, so this would end only by the clock if the loop were serial.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!met && std::chrono::steady_clock::now() < limit) nap(10);
    inside.fetch_sub(1);
  });
  CHECK(met);
  for (const auto& items : seen) CHECK(std::is_sorted(items.begin(), items.end()));
}

TEST_CASE("thread pool: no two bodies of a call share a worker at the same time") {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> busy(4);
  std::atomic<int> clashes = 0;
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> strangers = 0;
  pool.parallel_for(2000, [&](std::int64_t, int worker) {
    auto& mine = busy[static_cast<std::size_t>(worker)];
    clashes += mine.fetch_add(1) != 0;
    strangers += (std::this_thread::get_id() == caller) != (worker == 0);
    mine.fetch_sub(1);
  });
  CHECK(clashes == 0);
  CHECK(strangers == 0);
}

TEST_CASE("thread pool: calls work when the workers have fallen asleep in between") {
  ThreadPool pool(3);
  for (int round = 0; round < 50; ++round) {
    REQUIRE(all_once(runs_of(pool, 10)));
    nap(round % 5 * 60);  // around the time that workers spend waiting actively
  }
}

TEST_CASE("thread pool: several threads may call at once") {
  ThreadPool pool(4);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 6; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) wrong += !all_once(runs_of(pool, 17));
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

TEST_CASE("thread pool: a call from inside a body runs there and does not deadlock") {
  ThreadPool pool(4), other(3);
  std::atomic<int> sum = 0;
  pool.parallel_for(16, [&](std::int64_t, int) {
    const std::thread::id outer = std::this_thread::get_id();
    pool.parallel_for(8, [&](std::int64_t, int worker) {
      sum += worker == 0 && std::this_thread::get_id() == outer;
    });
    other.parallel_for(
        8, [&](std::int64_t, int) { pool.parallel_for(2, [&](std::int64_t, int) { ++sum; }); });
  });
  CHECK(sum == 16 * (8 + 16));
}

TEST_CASE("thread pool: an exception reaches the caller after all bodies have ended") {
  for (int threads : {1, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 50; ++round) {
      std::atomic<int> inside = 0, run = 0;
      const auto body = [&](std::int64_t item, int) {
        ++inside;
        ++run;
        nap(20);
        --inside;
        if (item == 5) throw std::runtime_error("item 5");
      };
      REQUIRE_THROWS_WITH(pool.parallel_for(100000, body), "item 5");
      CHECK(inside == 0);
      CHECK(run < 1000);
      REQUIRE(all_once(runs_of(pool, 100)));
    }
  }
}

TEST_CASE("thread pool: after an exception the thread may share out work again") {
  ThreadPool pool(2);
  const auto fail = [](std::int64_t, int) { throw std::runtime_error("once"); };
  REQUIRE_THROWS_WITH(pool.parallel_for(1, fail), "once");
  std::atomic<bool> helped = false;
  pool.parallel_for(2, [&](std::int64_t, int worker) {
    if (worker == 1) helped = true;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!helped && std::chrono::steady_clock::now() < limit) nap(10);
  });
  CHECK(helped);
}

TEST_CASE("thread pool: a call does not allocate") {
  ThreadPool pool(4);
  std::vector<std::int64_t> sums(4);
  const auto call = [&] {
    pool.parallel_for(100, [&](std::int64_t item, int worker) {
      sums[static_cast<std::size_t>(worker)] += item;
    });
  };
  call();
  const std::int64_t before = allocation_count();
  for (int round = 0; round < 100; ++round) call();
  CHECK(allocation_count() == before);
  CHECK(std::accumulate(sums.begin(), sums.end(), std::int64_t{0}) == 101 * 4950);
}

TEST_CASE("thread pool: pools come and go without a call, or right after one") {
  for (int round = 0; round < 100; ++round) {
    ThreadPool pool(4);
    if (round % 2) runs_of(pool, 3);
  }
}

TEST_CASE("thread pool: in a forked child, work is done by the child alone") {
  ThreadPool pool(3);
  runs_of(ThreadPool::shared(), 10);
  std::atomic<bool> running = false, forked = false;
  std::thread other([&] {  // its call holds the pool while the process forks
    pool.parallel_for(3, [&](std::int64_t, int) {
      running = true;
      while (!forked) nap(10);
    });
  });
  while (!running) nap(10);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a hang must not outlive the test
    bool right = all_once(runs_of(pool, 10)) && all_once(runs_of(ThreadPool::shared(), 10));
#if !defined(__SANITIZE_THREAD__)  // which forbids new threads there
    ThreadPool fresh(2);
    right = right && all_once(runs_of(fresh, 10));
#endif
    pool.~ThreadPool();
    _exit(right ? 0 : 1);
  }
  forked = true;
  other.join();
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(all_once(runs_of(pool, 10)));
}

TEST_CASE("thread pool: TILEWRIGHT_THREADS sizes the shared pool, else the CPUs allowed do") {
  setenv("TILEWRIGHT_THREADS", "7", 1);
  CHECK(ThreadPool::default_size() == 7);
  for (const char* value : {"0", "-1", "many", "4x", "1025", "99999999999999999999"}) {
    setenv("TILEWRIGHT_THREADS", value, 1);
    REQUIRE_THROWS_WITH(ThreadPool::default_size(),
                        ContainsSubstring("error[usage]") && ContainsSubstring(value));
  }
  setenv("TILEWRIGHT_THREADS", "", 1);
  CHECK(ThreadPool::default_size() >= 1);
  unsetenv("TILEWRIGHT_THREADS");

  cpu_set_t all, one;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  CHECK(ThreadPool::default_size() == CPU_COUNT(&all));
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  CHECK(ThreadPool::default_size() == 1);
  sched_setaffinity(0, sizeof all, &all);
}
