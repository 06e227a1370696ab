// Prints what docs/cache.md promises. The bounds are wide, for slow and busy machines; the numbers
// to look at are the printed ones.

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cache/store.hpp"
#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"

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
    if (disk.load(key).status != DiskEntry::Status::hit) FAIL("no hit");
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
