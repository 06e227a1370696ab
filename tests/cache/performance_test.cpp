// Prints what docs/cache.md promises. The bounds are wide, for slow and busy machines; the numbers
// to look at are the printed ones.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cache/store.hpp"
#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

using namespace tilewright::cache;
using namespace cache_test;

namespace {

// The median of `runs` timings of `work`, in microseconds for one of its `repeats`.
template <typename Work>
double median_microseconds(int runs, int repeats, const Work& work) {
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) work();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    times.push_back(time.count() / repeats);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

TEST_CASE("performance: a hit in memory, a verified hit on disk, and what a miss adds") {
  constexpr std::size_t kBytes = 200 << 10;
  const TemporaryFolder folder;
  const Key key = key_named("a");
  Store store({.directory = folder.path()});
  store.load_or_build(key, [] { return entry_named("a", kBytes); });

  const double memory = median_microseconds(21, 1000, [&] {
    if (!store.load_or_build(key, [] { return Entry(); }).entry) FAIL("no entry");
  });
  const Disk disk(folder.path());
  const double verified = median_microseconds(101, 1, [&] {
    if (disk.load(key).status != LoadResult::Status::hit) FAIL("no hit");
  });
  const Entry entry = entry_named("a", kBytes);
  int number = 0;
  const double publish = median_microseconds(21, 1, [&] {
    store.load_or_build(key_named(std::to_string(++number)), [&] { return entry; });
  });
  std::printf(
      "[cache] hit in memory %.3f us; verified hit on disk, 200 KiB, %.0f us; "
      "lock, write and sync of a built one %.0f us\n",
      memory, verified, publish);
  REQUIRE(memory < 5);
  REQUIRE(verified < 5000);
}

#if !defined(__SANITIZE_THREAD__)  // whose own thread makes some, and outlives the one that exits
TEST_CASE("performance: a hit in memory makes no system call") {
  constexpr int kHits = 1'000'000;
  constexpr int kNoSeccomp = 77;
  const TemporaryFolder folder;
  const Key key = key_named("a");
  const auto hit_without_system_calls = [&](bool on_disk) {
    return run_in_child([&] {
      Store store({.directory = folder.path()});
      const auto build = [] { return entry_named("a"); };
      store.load_or_build(key, build);
      if (on_disk) store = Store({.directory = folder.path()});
      // From here on the kernel kills this process for any call but read, write and exit.
      if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) return kNoSeccomp;
      bool found = true;
      for (int i = 0; i < kHits; ++i) found = found && store.load_or_build(key, build).entry;
      ::syscall(SYS_exit, found ? 0 : 1);
      return 1;
    });
  };
  const int status = hit_without_system_calls(false);
  if (status == kNoSeccomp) {
    tilewright::test::say_skipped("system calls cannot be forbidden here (no seccomp)");
    return;
  }
  std::printf("[cache] %d hits in memory: %s system call\n", kHits, status == 0 ? "no" : "a");
  REQUIRE(status == 0);
  REQUIRE(hit_without_system_calls(true) == -SIGKILL);  // the trap works
}
#endif
