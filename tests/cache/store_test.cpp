#include "cache/store.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>

#include <fcntl.h>

#include "base/error.hpp"
#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::cache;
using namespace cache_test;
using namespace std::chrono_literals;

namespace {

Store store_in(const TemporaryFolder& folder, Warnings& warnings) {
  return Store({.directory = folder.path(), .diagnostics = warnings.sink()});
}

Entry must_not_build() {
  throw std::logic_error("was built");
}

// Runs `work(i)` in as many threads at once.
template <typename Work>
void in_threads(int count, const Work& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("store: an entry is built, then found in memory, then on disk by the next process") {
  const TemporaryFolder folder;
  Warnings warnings;
  const Entry wanted = entry_named("a");
  {
    Store store = store_in(folder, warnings);
    REQUIRE(store.load(wanted.key) == nullptr);
    REQUIRE(store.load_or_build(wanted.key, [&] { return wanted; }).source == Source::built);
    REQUIRE(store.load_or_build(wanted.key, must_not_build).source == Source::memory);
    REQUIRE(store.load(wanted.key)->payload == wanted.payload);
  }
  Store store = store_in(folder, warnings);
  const Store::Result result = store.load_or_build(wanted.key, must_not_build);
  REQUIRE(result.source == Source::disk);
  REQUIRE(result.entry->payload == wanted.payload);
  REQUIRE(result.entry->metadata == wanted.metadata);
  REQUIRE(std::filesystem::exists(entry_path(folder.path(), wanted.key)));
  REQUIRE(files_below(folder.path()).size() == 1);
  REQUIRE(warnings.count() == 0);
}

TEST_CASE("store: load finds what another store has published") {
  const TemporaryFolder folder;
  Warnings warnings;
  Store one = store_in(folder, warnings);
  Store other = store_in(folder, warnings);
  REQUIRE(other.load(key_named("a")) == nullptr);
  one.load_or_build(key_named("a"), [] { return entry_named("a"); });
  REQUIRE(other.load(key_named("a")) != nullptr);
  REQUIRE(other.stats().hits_disk == 1);
}

TEST_CASE("store: the key that was asked for is stored, not the one that build returns") {
  const TemporaryFolder folder;
  Warnings warnings;
  Store store = store_in(folder, warnings);
  store.load_or_build(key_named("a"), [] { return entry_named("b"); });
  REQUIRE(store.load(key_named("a"))->key == key_named("a"));
  REQUIRE(store.load(key_named("b")) == nullptr);
}

TEST_CASE("store: many threads on one cold key build once") {
  const TemporaryFolder folder;
  Warnings warnings;
  Store store = store_in(folder, warnings);
  std::atomic<int> builds{0};
  std::atomic<int> right{0};
  in_threads(16, [&](int) {
    const Store::Result result = store.load_or_build(key_named("a"), [&] {
      ++builds;
      std::this_thread::sleep_for(50ms);
      return entry_named("a");
    });
    if (result.entry->payload == entry_named("a").payload) ++right;
  });
  REQUIRE(builds == 1);
  REQUIRE(right == 16);
  REQUIRE(store.stats().builds == 1);
  REQUIRE(store.stats().hits_memory == 15);
}

TEST_CASE("store: without a directory, too, one key is built once") {
  Warnings warnings;
  Store store({.directory = std::nullopt, .diagnostics = warnings.sink()});
  // All threads go through the keys together, so that many find one just as it gets ready.
  constexpr int kKeys = 3000;
  std::atomic<int> builds{0};
  in_threads(8, [&](int) {
    for (int i = 0; i < kKeys; ++i) {
      const std::string name = std::to_string(i);
      store.load_or_build(key_named(name), [&] {
        ++builds;
        return entry_named(name);
      });
    }
  });
  REQUIRE(builds == kKeys);
  REQUIRE(warnings.count() == 1);
}

TEST_CASE("store: different keys are built at the same time") {
  const TemporaryFolder folder;
  Warnings warnings;
  Store store = store_in(folder, warnings);
  constexpr int kThreads = 16;
  std::atomic<int> inside{0};
  std::atomic<int> met{0};
  in_threads(kThreads, [&](int i) {
    const std::string name = std::to_string(i);
    store.load_or_build(key_named(name), [&] {
      ++inside;
      for (int patience = 0; patience < 2000 && inside < kThreads; ++patience) {
        std::this_thread::sleep_for(5ms);
      }
      if (inside == kThreads) ++met;
      return entry_named(name);
    });
  });
  REQUIRE(met == kThreads);
}

TEST_CASE("store: what build throws reaches all who waited, and the next caller tries again") {
  const TemporaryFolder folder;
  Warnings warnings;
  Store store = store_in(folder, warnings);
  std::atomic<int> attempts{0};
  std::atomic<int> caught{0};
  in_threads(4, [&](int) {
    try {
      store.load_or_build(key_named("a"), [&]() -> Entry {
        ++attempts;
        std::this_thread::sleep_for(200ms);
        throw tilewright::Error(tilewright::ErrorCode::snippet, "no such variable");
      });
    } catch (const tilewright::Error& error) {
      if (error.code() == tilewright::ErrorCode::snippet) ++caught;
    }
  });
  REQUIRE(caught == 4);
  REQUIRE(attempts == 1);
  REQUIRE(files_below(folder.path()).empty());
  REQUIRE(store.load_or_build(key_named("a"), [] { return entry_named("a"); }).source ==
          Source::built);
  REQUIRE(warnings.count() == 0);
}

TEST_CASE("store: a lasting failure is remembered, for this process only") {
  const TemporaryFolder folder;
  Warnings warnings;
  Store store = store_in(folder, warnings);
  int attempts = 0;
  const auto fail = [&]() -> Entry {
    ++attempts;
    throw LastingFailure(tilewright::Error(tilewright::ErrorCode::snippet, "no such variable"));
  };
  for (int i = 0; i < 3; ++i) {
    REQUIRE_THROWS_WITH(store.load_or_build(key_named("a"), fail),
                        "error[snippet]: no such variable");
  }
  REQUIRE(attempts == 1);
  REQUIRE(store.stats().failed_builds == 2);
  REQUIRE(files_below(folder.path()).empty());
  Store next = store_in(folder, warnings);
  REQUIRE(next.load_or_build(key_named("a"), [] { return entry_named("a"); }).source ==
          Source::built);
  // What another process could build is taken.
  REQUIRE(store.load_or_build(key_named("a"), fail).source == Source::disk);
  store.clear();
  REQUIRE_THROWS(store.load_or_build(key_named("b"), fail));
  store.clear();
  REQUIRE_THROWS(store.load_or_build(key_named("b"), fail));
  REQUIRE(attempts == 3);
}

TEST_CASE("store: a build may use the store for other keys, but not for its own") {
  const TemporaryFolder folder;
  Warnings warnings;
  Store store = store_in(folder, warnings);
  store.load_or_build(key_named("outer"), [&] {
    store.load_or_build(key_named("inner"), [] { return entry_named("inner"); });
    return entry_named("outer");
  });
  REQUIRE(store.stats().entries == 2);
  REQUIRE_THROWS_WITH(store.load_or_build(key_named("a"),
                                          [&] {
                                            store.load_or_build(key_named("a"), must_not_build);
                                            return entry_named("a");
                                          }),
                      Catch::Matchers::ContainsSubstring("needed to build itself"));
}

TEST_CASE("store: ls and stats tell what is there, clear removes it") {
  const TemporaryFolder folder;
  Warnings warnings;
  Store store = store_in(folder, warnings);
  REQUIRE(store.ls().empty());
  REQUIRE(store.stats().entries == 0);
  const auto before = std::chrono::system_clock::now() - 2s;
  for (const char* name : {"a", "b", "c"}) {
    store.load_or_build(key_named(name), [&] { return entry_named(name); });
  }
  const std::vector<Listing> listings = store.ls();
  REQUIRE(listings.size() == 3);
  for (std::size_t i = 0; i < listings.size(); ++i) {
    const Listing& listing = listings[i];
    if (i > 0) REQUIRE(listings[i - 1].key < listing.key);
    REQUIRE(key_named(listing.metadata.at("kernel")) == listing.key);
    REQUIRE(listing.bytes == std::filesystem::file_size(entry_path(folder.path(), listing.key)));
    REQUIRE(listing.created > before);
    REQUIRE(listing.last_used >= listing.created);
    REQUIRE(listing.problem.empty());
  }
  REQUIRE(store.stats().bytes == 3 * listings[0].bytes);

  const Usage removed = store.clear();
  REQUIRE(removed.entries == 3);
  REQUIRE(removed.bytes == 3 * listings[0].bytes);
  REQUIRE(files_below(folder.path()).empty());
  REQUIRE(store.ls().empty());
  REQUIRE(store.load(key_named("a")) == nullptr);
  REQUIRE(store.clear().entries == 0);
}

TEST_CASE("store: ls and clear leave alone what is not the cache's") {
  const TemporaryFolder folder;
  Warnings warnings;
  Store store = store_in(folder, warnings);
  store.load_or_build(key_named("a"), [] { return entry_named("a"); });
  const auto shard = entry_path(folder.path(), key_named("a")).parent_path();
  const std::vector<std::filesystem::path> others = {
      folder / "notes.txt", shard / "notes.twk", shard / ".tmp-being-written", folder / "v1" / "x"};
  for (const auto& path : others) tilewright::write_text_file(path, "mine");
  REQUIRE(store.ls().size() == 1);
  REQUIRE(store.clear().entries == 1);
  for (const auto& path : others) REQUIRE(std::filesystem::exists(path));
}

TEST_CASE("store: what killed writers left behind is swept after a while") {
  const TemporaryFolder folder;
  Warnings warnings;
  Store store = store_in(folder, warnings);
  store.load_or_build(key_named("a"), [] { return entry_named("a"); });
  const auto leftover = entry_path(folder.path(), key_named("a")).parent_path() / ".tmp-dead";
  tilewright::write_text_file(leftover, "half an ent");
  store.clear();
  REQUIRE(std::filesystem::exists(leftover));  // its writer may be alive
  std::filesystem::last_write_time(leftover, std::filesystem::file_time_type::clock::now() - 1h);
  store.load_or_build(key_named("a"), [] { return entry_named("a"); });
  REQUIRE_FALSE(std::filesystem::exists(leftover));
}

TEST_CASE("store: a deleted directory is made again") {
  const TemporaryFolder folder;
  Warnings warnings;
  Store store({.directory = folder / "cache", .diagnostics = warnings.sink()});
  store.load_or_build(key_named("a"), [] { return entry_named("a"); });
  std::filesystem::remove_all(folder / "cache");
  store.load_or_build(key_named("b"), [] { return entry_named("b"); });
  REQUIRE(std::filesystem::exists(entry_path(folder / "cache", key_named("b"))));
  REQUIRE(warnings.count() == 0);
}

TEST_CASE("store: a relative directory stays where it was when the process moves") {
  const TemporaryFolder folder;
  REQUIRE(run_in_child([&] {
            std::filesystem::current_path(folder.path());
            Store store({.directory = "cache"});
            std::filesystem::current_path("/");
            store.load_or_build(key_named("a"), [] { return entry_named("a"); });
            return 0;
          }) == 0);
  REQUIRE(std::filesystem::exists(entry_path(folder / "cache", key_named("a"))));
}

TEST_CASE("store: memory is bounded, and what is in use survives") {
  const TemporaryFolder folder;
  Warnings warnings;
  Store store({.directory = folder.path(), .diagnostics = warnings.sink(), .memory_bytes = 10'000});
  const auto held =
      store.load_or_build(key_named("0"), [] { return entry_named("0", 3000); }).entry;
  for (int i = 1; i < 20; ++i) {
    const std::string name = std::to_string(i);
    store.load_or_build(key_named(name), [&] { return entry_named(name, 3000); });
    REQUIRE(store.load_or_build(key_named(name), must_not_build).source == Source::memory);
  }
  REQUIRE(held->payload == entry_named("0", 3000).payload);
  int in_memory = 0;
  for (int i = 0; i < 20; ++i) {
    const auto before = store.stats().hits_memory;
    REQUIRE(store.load(key_named(std::to_string(i))) != nullptr);
    in_memory += store.stats().hits_memory > before ? 1 : 0;
  }
  REQUIRE(in_memory <= 3);
}

TEST_CASE("store: the time of the last use is noted") {
  const TemporaryFolder folder;
  Warnings warnings;
  const Key key = key_named("a");
  store_in(folder, warnings).load_or_build(key, [] { return entry_named("a"); });
  const timespec long_ago[2] = {{1000, 0}, {2000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, entry_path(folder.path(), key).c_str(), long_ago, 0) == 0);
  Store store = store_in(folder, warnings);
  REQUIRE(store.ls()[0].last_used == std::chrono::system_clock::from_time_t(2000));
  REQUIRE(store.load(key) != nullptr);
  REQUIRE(store.ls()[0].last_used > std::chrono::system_clock::now() - 10s);
  REQUIRE(store.ls()[0].created == std::chrono::system_clock::from_time_t(2000));
}

TEST_CASE("store: threads that load, build and clear at once never see a wrong byte") {
  const TemporaryFolder folder;
  Warnings warnings;
  Store stores[] = {store_in(folder, warnings), store_in(folder, warnings)};
  std::atomic<int> wrong{0};
  in_threads(8, [&](int i) {
    Store& store = stores[i % 2];
    for (int round = 0; round < 60; ++round) {
      const std::string name = std::to_string((i * 7 + round) % 5);
      if (round % 20 == 19) store.clear();
      if (round % 20 == 10) store.ls();
      const auto entry =
          store.load_or_build(key_named(name), [&] { return entry_named(name, 5000); }).entry;
      if (entry->payload != entry_named(name, 5000).payload) ++wrong;
    }
  });
  REQUIRE(wrong == 0);
  REQUIRE(stores[0].stats().bad_entries == 0);
  for (const std::string& text : warnings.texts()) UNSCOPED_INFO(text);
  REQUIRE(warnings.count() == 0);
}
