#include <cstdio>
#include <ctime>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/store.hpp"
#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::cache;
using namespace cache_test;

namespace {

void store_entries(Store& store, int first, int last, std::size_t bytes = 1000) {
  for (int i = first; i <= last; ++i) {
    const std::string name = std::to_string(i);
    store.load_or_build(key_named(name), [&] { return entry_named(name, bytes); });
  }
}

// As if it was last used that long ago.
void age(const std::filesystem::path& file, std::time_t seconds) {
  const timespec time{std::time(nullptr) - seconds, 0};
  const timespec times[2] = {time, time};
  REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
}

bool is_there(const TemporaryFolder& folder, int number) {
  return std::filesystem::exists(entry_path(folder.path(), key_named(std::to_string(number))));
}

}  // namespace

TEST_CASE("eviction: what was not used for longest goes, until an eighth is free") {
  const TemporaryFolder folder;
  Store store({.directory = folder.path(), .max_bytes = 0});
  store_entries(store, 1, 8);
  for (int i = 1; i <= 8; ++i) {
    age(entry_path(folder.path(), key_named(std::to_string(i))), i == 3 ? 10 : 1000 - i);
  }
  const std::uint64_t each = store.stats().bytes / 8;
  const Pruned pruned = store.prune(4 * each);
  REQUIRE(pruned.removed.entries == 5);  // three and a half may stay
  REQUIRE(pruned.left.entries == 3);
  REQUIRE(pruned.left.bytes == store.stats().bytes);
  for (int i = 1; i <= 8; ++i) REQUIRE(is_there(folder, i) == (i == 3 || i >= 7));
}

TEST_CASE("eviction: a hit on disk counts as use") {
  const TemporaryFolder folder;
  {
    Store store({.directory = folder.path()});
    store_entries(store, 1, 4);
  }
  for (int i = 1; i <= 4; ++i) {
    age(entry_path(folder.path(), key_named(std::to_string(i))), 1000 - i);
  }
  Store store({.directory = folder.path()});
  REQUIRE(store.load(key_named("1")));
  store.prune(store.stats().bytes / 2);
  REQUIRE(is_there(folder, 1));
  REQUIRE_FALSE(is_there(folder, 2));
}

TEST_CASE("eviction: entries of a clock that was wrong go first, unless they are used now") {
  const TemporaryFolder folder;
  {
    Store store({.directory = folder.path()});
    store_entries(store, 1, 4);
  }
  constexpr std::time_t kYears = std::time_t{10} * 365 * 86400;
  const auto path = [&](int i) { return entry_path(folder.path(), key_named(std::to_string(i))); };
  for (const int i : {1, 2}) age(path(i), -kYears);
  Store store({.directory = folder.path()});
  REQUIRE(store.load(key_named("1")));
  struct stat status {};
  REQUIRE(::stat(path(1).c_str(), &status) == 0);
  REQUIRE(status.st_atim.tv_sec <= std::time(nullptr));
  REQUIRE(status.st_mtim.tv_sec <= std::time(nullptr));
  REQUIRE(store.prune(store.stats().bytes - 1).removed.entries == 1);
  for (int i = 1; i <= 4; ++i) REQUIRE(is_there(folder, i) == (i != 2));

  const auto temporary = path(1).parent_path() / ".tmp-future";
  REQUIRE(::close(::open(temporary.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == 0);
  age(temporary, -kYears);
  store.prune(0);
  REQUIRE_FALSE(std::filesystem::exists(temporary));
}

TEST_CASE("eviction: a store keeps to its limit by itself") {
  const TemporaryFolder folder;
  Store store({.directory = folder.path(), .max_bytes = 20'000});
  std::uint64_t most = 0;
  for (int i = 0; i < 100; ++i) {
    store_entries(store, i, i);
    most = std::max(most, store.stats().bytes);
  }
  std::printf("[cache] limit 20000 bytes: at most %ju, %ju evictions\n",
              static_cast<std::uintmax_t>(most),
              static_cast<std::uintmax_t>(store.stats().evictions));
  REQUIRE(most <= 20'000 + 20'000 / 16 + 2 * 1300);
  REQUIRE(store.stats().evictions > 80);
  REQUIRE(store.stats().entries + store.stats().evictions == 100);
  REQUIRE(store.load(key_named("99")));
}

TEST_CASE("eviction: what is being read stays") {
  const TemporaryFolder folder;
  Store store({.directory = folder.path()});
  store_entries(store, 1, 2);
  const auto path = entry_path(folder.path(), key_named("1"));
  {
    const tilewright::FileDescriptor reader(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(::flock(reader.get(), LOCK_SH) == 0);
    REQUIRE(store.prune(1).left.entries == 1);
    REQUIRE(std::filesystem::exists(path));
  }
  REQUIRE(store.prune(1).left.entries == 0);
}

TEST_CASE("eviction: a sweep removes what killed processes left, and nothing that is not ours") {
  const TemporaryFolder folder;
  Store store({.directory = folder.path()});
  store_entries(store, 1, 1);
  const auto shard = entry_path(folder.path(), key_named("1")).parent_path();
  const std::string hex = key_named("2").digest.hex();
  const auto temporary = shard / ".tmp-old";
  const auto bad = shard / (hex + ".bad");
  const auto lock = folder.path() / "v1" / "locks" / (hex + ".lock");
  const auto foreign = shard / "notes.txt";
  for (const auto& file : {temporary, bad, lock, foreign, shard / ".tmp-new"}) {
    REQUIRE(::close(::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == 0);
    if (file.filename() != ".tmp-new") age(file, 100'000);
  }
  REQUIRE(store.stats().leftovers.entries == 3);
  REQUIRE(store.prune(0).removed.entries == 0);
  REQUIRE(store.stats().leftovers.entries == 1);
  for (const auto& file : {temporary, bad, lock}) REQUIRE_FALSE(std::filesystem::exists(file));
  REQUIRE(std::filesystem::exists(foreign));
  REQUIRE(std::filesystem::exists(shard / ".tmp-new"));
  REQUIRE(store.load(key_named("1")));
}

TEST_CASE("eviction: sizes are read as people write them") {
  REQUIRE(parse_size("0") == 0u);
  REQUIRE(parse_size("1048576") == 1048576u);
  REQUIRE(parse_size("500M") == 500u << 20);
  REQUIRE(parse_size("1.5 GiB") == 3u << 29);
  REQUIRE(parse_size("2KB") == 2048u);
  REQUIRE(parse_size("7B") == 7u);
  for (const char* wrong : {"", "M", "-1", "nan", "inf", "1e30", "2X", "2 GB now", "0x10"}) {
    CAPTURE(wrong);
    REQUIRE_FALSE(parse_size(wrong));
  }
}

TEST_CASE("notes: what was found out is there for the next process, unless it was touched") {
  const TemporaryFolder folder;
  const Store store({.directory = folder.path()});
  REQUIRE_FALSE(store.note("which"));
  store.keep_note("which", "this");
  store.keep_note("empty", "");
  const Store next({.directory = folder.path()});
  REQUIRE(next.note("which") == "this");
  REQUIRE(next.note("empty") == "");
  REQUIRE_FALSE(next.note("other"));
  REQUIRE(next.stats().entries == 0);

  store.keep_note("which", "that");
  REQUIRE(next.note("which") == "that");
  for (const auto& item : std::filesystem::directory_iterator(folder.path() / "v1" / "notes")) {
    const tilewright::FileDescriptor file(::open(item.path().c_str(), O_WRONLY | O_CLOEXEC));
    REQUIRE(::pwrite(file.get(), "x", 1, 60) == 1);
  }
  REQUIRE_FALSE(next.note("which"));
  REQUIRE_FALSE(next.note("empty"));
  Store(Store::Options{}).keep_note("which", "that");  // no directory: silently nothing
}
