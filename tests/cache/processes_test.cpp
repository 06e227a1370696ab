#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <thread>

#include <unistd.h>

#include "cache/store.hpp"
#include "tests/cache/faults.hpp"
#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::cache;
using namespace cache_test;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

// Holds children back until all of them are there.
class StartingGun {
 public:
  StartingGun() { REQUIRE(::pipe(pipe_) == 0); }
  void wait() {  // in a child
    ::close(pipe_[1]);
    char byte;
    static_cast<void>(::read(pipe_[0], &byte, 1));
  }
  void fire() {  // in the parent
    ::close(pipe_[1]);
    ::close(pipe_[0]);
  }

 private:
  int pipe_[2] = {-1, -1};
};

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

TEST_CASE("processes: 64 processes of 8 threads on one cold key compile once") {
  const TemporaryFolder folder;
  const auto built = folder / "built";
  StartingGun gun;
  std::vector<pid_t> children;
  for (int i = 0; i < 64; ++i) {
    children.push_back(start_child([&] {
      Store store({.directory = folder / "cache"});
      gun.wait();
      std::atomic<int> right{0};
      std::vector<std::thread> threads;
      for (int thread = 0; thread < 8; ++thread) {
        threads.emplace_back([&] {
          const auto entry = store
                                 .load_or_build(key_named("a"),
                                                [&] {
                                                  count_in(built);
                                                  std::this_thread::sleep_for(100ms);
                                                  return entry_named("a", 50'000);
                                                })
                                 .entry;
          if (entry->payload == entry_named("a", 50'000).payload) ++right;
        });
      }
      for (std::thread& thread : threads) thread.join();
      return right == 8 ? 0 : 1;
    }));
  }
  const auto start = Clock::now();
  gun.fire();
  for (const pid_t child : children) REQUIRE(wait_for_child(child) == 0);
  std::printf("[cache] 64 processes x 8 threads, one cold key: %.0f ms, %ju build\n",
              milliseconds_since(start), std::filesystem::file_size(built));
  REQUIRE(std::filesystem::file_size(built) == 1);
  REQUIRE(files_below(folder / "cache").size() == 1);
}

TEST_CASE("processes: 64 processes with a key each do not wait for one another") {
  const TemporaryFolder folder;
  StartingGun gun;
  std::vector<pid_t> children;
  for (int i = 0; i < 64; ++i) {
    children.push_back(start_child([&] {
      Store store({.directory = folder / "cache"});
      const std::string name = std::to_string(i);
      gun.wait();
      store.load_or_build(key_named(name), [&] {
        std::this_thread::sleep_for(300ms);
        return entry_named(name);
      });
      return 0;
    }));
  }
  const auto start = Clock::now();
  gun.fire();
  for (const pid_t child : children) REQUIRE(wait_for_child(child) == 0);
  const double milliseconds = milliseconds_since(start);
  std::printf("[cache] 64 processes x 300 ms, a key each: %.0f ms\n", milliseconds);
  REQUIRE(milliseconds < 6000);  // one after the other: 19200
}

TEST_CASE("processes: a holder that is killed is succeeded within a second") {
  const TemporaryFolder folder;
  const auto building = folder / "building";
  const pid_t holder = start_child([&] {
    Store({.directory = folder / "cache"}).load_or_build(key_named("a"), [&]() -> Entry {
      count_in(building);
      ::pause();
      return {};
    });
    return 0;
  });
  for (int i = 0; i < 5000 && !std::filesystem::exists(building); ++i) {
    std::this_thread::sleep_for(1ms);
  }
  Store store({.directory = folder / "cache"});
  Clock::time_point killed;
  std::atomic<bool> is_killed{false};
  std::thread killer([&] {
    std::this_thread::sleep_for(200ms);
    killed = Clock::now();
    is_killed = true;
    ::kill(holder, SIGKILL);
  });
  bool waited = false;
  const Store::Result result = store.load_or_build(key_named("a"), [&] {
    waited = is_killed;
    return entry_named("a");
  });
  killer.join();
  const double milliseconds = milliseconds_since(killed);
  REQUIRE(wait_for_child(holder) == -SIGKILL);
  std::printf("[cache] killed holder succeeded after %.1f ms\n", milliseconds);
  REQUIRE(waited);
  REQUIRE(result.source == Source::built);
  REQUIRE(milliseconds < 1000);
  REQUIRE(files_below(folder / "cache").size() == 1);
}

TEST_CASE("processes: one that is stopped does not stop the others for ever") {
  const TemporaryFolder folder;
  const auto building = folder / "building";
  const pid_t holder = start_child([&] {
    Store({.directory = folder / "cache"}).load_or_build(key_named("a"), [&]() -> Entry {
      count_in(building);
      ::pause();
      return {};
    });
    return 0;
  });
  for (int i = 0; i < 5000 && !std::filesystem::exists(building); ++i) {
    std::this_thread::sleep_for(1ms);
  }
  Warnings warnings;
  Store store(
      {.directory = folder / "cache", .diagnostics = warnings.sink(), .lock_patience = 100ms});
  const auto start = Clock::now();
  REQUIRE(store.load_or_build(key_named("a"), [] { return entry_named("a"); }).source ==
          Source::built);
  REQUIRE(milliseconds_since(start) >= 100);
  REQUIRE(warnings.count() == 1);
  REQUIRE_THAT(warnings.texts()[0], Catch::Matchers::ContainsSubstring("holds the lock"));
  ::kill(holder, SIGKILL);
  wait_for_child(holder);
}

TEST_CASE("processes: writers killed at random points never leave a bad entry") {
  const TemporaryFolder folder;
  constexpr int kKills = 60;
  constexpr std::size_t kBytes = 200'000;
  Warnings warnings;
  std::size_t published = 0;
  for (int i = 0; i < kKills; ++i) {
    const bool clears = i % 4 == 3;
    const auto built = folder / ("built" + std::to_string(i));
    const Entry entry = entry_named("a", kBytes);
    const pid_t child = start_child([&]() -> int {
      Store store({.directory = folder / "cache"});
      for (int number = 0;; ++number) {
        if (clears) store.clear();
        store.load_or_build(key_named(std::to_string(number)), [&] {
          count_in(built);
          return entry;
        });
      }
    });
    // From the second build on there has been a first entry.
    while (!std::filesystem::exists(built) || std::filesystem::file_size(built) < 2) {
      std::this_thread::sleep_for(100us);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(271 * (i % 23)));
    ::kill(child, SIGKILL);
    REQUIRE(wait_for_child(child) == -SIGKILL);
    Store store({.directory = folder / "cache", .diagnostics = warnings.sink()});
    const std::vector<Listing> listings = store.ls();
    if (!clears) REQUIRE_FALSE(listings.empty());
    for (const Listing& listing : listings) {
      REQUIRE(listing.problem.empty());
      REQUIRE(store.load(listing.key)->payload == entry.payload);
    }
    published += listings.size();
    store.clear();
  }
  std::printf("[cache] %d writers killed, %zu entries published, none of them bad\n", kKills,
              published);
  REQUIRE(warnings.count() == 0);

  // What they left is swept once it is old.
  for (const std::string& file : files_below(folder / "cache")) {
    std::filesystem::last_write_time(folder / "cache" / file,
                                     std::filesystem::file_time_type::clock::now() - 1h);
  }
  Store({.directory = folder / "cache"}).clear();
  REQUIRE(files_below(folder / "cache").empty());
}

TEST_CASE("processes: a cache that is cleared while others use it gives no wrong byte") {
  const TemporaryFolder folder;
  StartingGun gun;
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(start_child([&] {
      Warnings warnings;
      gun.wait();
      for (int round = 0; round < 100; ++round) {
        Store store({.directory = folder / "cache", .diagnostics = warnings.sink()});
        const std::string name = std::to_string(round % 3);
        if (i == 0) store.clear();
        const auto entry =
            store.load_or_build(key_named(name), [&] { return entry_named(name, 3000); }).entry;
        if (entry->payload != entry_named(name, 3000).payload) return 1;
        store.stats();
      }
      return warnings.count() == 0 ? 0 : 2;
    }));
  }
  gun.fire();
  for (const pid_t child : children) REQUIRE(wait_for_child(child) == 0);
}
