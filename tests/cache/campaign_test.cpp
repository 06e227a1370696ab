// Long runs against one directory. TILEWRIGHT_TEST_FULL=1 runs them in the length that
// docs/cache.md states; TILEWRIGHT_TEST_KILLS sets another number of kills.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/store.hpp"
#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/full_run.hpp"

using namespace tilewright::cache;
using namespace cache_test;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

// A full run flips one bit of so many of a long entry. Three does not divide eight, so that each
// byte has two or three flips.
constexpr std::size_t kShares = 3;

int kills_wanted() {
  if (const char* value = std::getenv("TILEWRIGHT_TEST_KILLS")) return std::atoi(value);
  return is_whole_run() ? 2000 : is_full_run() ? 600 : 200;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// An entry whose size and bytes follow from its number.
Entry entry_number(unsigned number) {
  return entry_named("key " + std::to_string(number), 200 + number * 37 % 1700);
}
Key key_number(unsigned number) {
  return key_named("key " + std::to_string(number));
}

void age_everything(const std::filesystem::path& folder) {
  const timespec time{std::time(nullptr) - 100'000, 0};
  const timespec times[2] = {time, time};
  for (const std::string& file : files_below(folder)) {
    ::utimensat(AT_FDCWD, (folder / file).c_str(), times, 0);
  }
}

std::uint64_t bytes_below(const std::filesystem::path& folder) {
  std::uint64_t bytes = 0;
  for (const std::string& file : files_below(folder))
    bytes += std::filesystem::file_size(folder / file);
  return bytes;
}

// Puts, evicts, clears and makes the directory until it is killed.
[[noreturn]] void work_until_killed(const std::filesystem::path& directory, unsigned seed) {
  std::minstd_rand random(seed);
  for (;;) {
    Store store({.directory = directory, .memory_bytes = 0, .max_bytes = 16'000});
    for (int i = 0; i < 20; ++i) {
      const unsigned number = static_cast<unsigned>(random()) % 40;
      store.load_or_build(key_number(number), [&] { return entry_number(number); });
    }
    if (random() % 4 == 0) store.prune(8'000);
    if (random() % 16 == 0) store.clear();
    if (random() % 16 == 0) std::filesystem::remove_all(directory);
  }
}

// Bad loads, counted over all that is there.
int wrong_entries(const std::filesystem::path& directory) {
  Warnings warnings;
  Store store({.directory = directory, .diagnostics = warnings.sink()});
  int wrong = 0;
  for (unsigned number = 0; number < 40; ++number) {
    const auto entry = store.load(key_number(number));
    if (entry && entry->payload != entry_number(number).payload) ++wrong;
  }
  return wrong + static_cast<int>(store.stats().bad_entries + warnings.count());
}

}  // namespace

TEST_CASE("campaign: killed at random points of put, evict and init") {
  const TemporaryFolder folder;
  const auto directory = folder / "cache";
  std::minstd_rand random(7);
  const int kills = kills_wanted();
  const auto start = Clock::now();
  int bad = 0;
  double longest = 0;
  for (int kill = 0; kill < kills; ++kill) {
    const auto seed = static_cast<unsigned>(random());
    const pid_t child = start_child([&]() -> int { work_until_killed(directory, seed); });
    // Two at a time now and then, so that one dies while the other goes on.
    const pid_t other =
        kill % 5 != 0 ? -1 : start_child([&]() -> int { work_until_killed(directory, seed + 1); });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 6000));
    ::kill(child, SIGKILL);
    wait_for_child(child);
    if (other > 0) {
      std::this_thread::sleep_for(1ms);
      ::kill(other, SIGKILL);
      wait_for_child(other);
    }
    const auto asked = Clock::now();
    bad += wrong_entries(directory);
    longest = std::max(longest, seconds_since(asked));
  }
  age_everything(folder.path());
  Store store({.directory = directory});
  store.prune(0);
  const Stats stats = store.stats();
  std::printf(
      "[cache] %d kills in %.0f s: %d bad loads, longest check %.0f ms, %ju leftovers after a "
      "sweep\n",
      kills, seconds_since(start), bad, longest * 1e3,
      static_cast<std::uintmax_t>(stats.leftovers.entries));
  REQUIRE(bad == 0);
  REQUIRE(longest < 10);
  REQUIRE(stats.leftovers.entries == 0);
  REQUIRE(files_below(folder.path()).size() == stats.entries);
  REQUIRE(bytes_below(folder.path()) == stats.bytes);
}

TEST_CASE("campaign: 16 processes mix everything under a small limit") {
  const bool in_memory = ::access("/dev/shm", W_OK) == 0;
  if (in_memory) ::setenv("TMPDIR", "/dev/shm", 1);
  const TemporaryFolder folder;
  ::unsetenv("TMPDIR");
  constexpr unsigned kKeys = 2000;
  constexpr std::uint64_t kLimit = 200'000;  // a tenth of all
  const int operations = is_whole_run() ? 1'000'000 : is_full_run() ? 100'000 : 10'000;
  const auto start = Clock::now();
  std::vector<pid_t> children;
  for (unsigned child = 0; child < 16; ++child) {
    children.push_back(start_child([&, child] {
      std::minstd_rand random(child + 1);
      Warnings warnings;
      const Store::Options options{.directory = folder.path(),
                                   .diagnostics = warnings.sink(),
                                   .memory_bytes = 20'000,
                                   .max_bytes = kLimit};
      Store store(options);
      for (int i = 0; i < operations / 16; ++i) {
        const auto number = static_cast<unsigned>(random() % kKeys * (random() % 8) / 7);
        const Entry expected = entry_number(number);
        const auto what = random() % 1000;
        if (what < 600) {
          const auto entry = store.load(expected.key);
          if (entry && entry->payload != expected.payload) return 1;
        } else if (what < 996) {
          const auto entry = store.load_or_build(expected.key, [&] { return expected; }).entry;
          if (entry->payload != expected.payload) return 2;
        } else if (what < 998) {
          store.prune(kLimit / 2);
        } else if (what < 999) {
          for (const Listing& listing : store.ls()) {
            if (!listing.problem.empty()) return 3;
          }
        } else if (random() % 20 == 0) {
          store.clear();
        } else {
          store = Store(options);
        }
      }
      return warnings.count() == 0 ? 0 : 4;
    }));
  }
  int wrong = 0;
  for (const pid_t child : children) wrong += wait_for_child(child) == 0 ? 0 : 1;
  Store store({.directory = folder.path(), .max_bytes = kLimit});
  const std::uint64_t left = store.stats().bytes;
  std::printf(
      "[cache] %d operations of 16 processes in %.0f s: %d processes saw anything wrong, "
      "%ju bytes left of %ju\n",
      operations, seconds_since(start), wrong, static_cast<std::uintmax_t>(left),
      static_cast<std::uintmax_t>(kLimit));
  REQUIRE(wrong == 0);
  REQUIRE(left <= 2 * kLimit + 16 * 3000);
  for (const Listing& listing : store.ls()) REQUIRE(listing.problem.empty());
}

TEST_CASE("campaign: every bit flip and truncation of a long entry is detected") {
  // The short ones of integrity_test.cpp go through files; here it is the decoder alone.
  const Entry entry = entry_named("a", is_full_run() ? 65'000 : 3'000);
  std::vector<std::byte> bytes = encode(entry);
  std::size_t undetected = 0;
  std::size_t flips = 0;
  const auto start = Clock::now();
  const std::size_t shares = is_full_run() ? kShares : 1;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    if (!is_due(bit, shares)) continue;
    ++flips;
    std::vector<std::byte> flipped = bytes;
    flipped[bit / 8] ^= std::byte(1 << bit % 8);
    if (decode(std::move(flipped), entry.key).entry) ++undetected;
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    if (decode({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}, entry.key)
            .entry) {
      ++undetected;
    }
  }
  std::printf("[cache] %zu bytes: %zu bit flips and %zu truncations in %.0f s, %zu undetected\n",
              bytes.size(), flips, bytes.size(), seconds_since(start), undetected);
  REQUIRE(bytes.size() <= 65536);
  REQUIRE(undetected == 0);
}
