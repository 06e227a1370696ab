#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

#include "cache/store.hpp"
#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::cache;
using namespace cache_test;
using Catch::Matchers::ContainsSubstring;

namespace {

// A directory with one published entry, and a hand on its file.
struct Published {
  explicit Published(const std::string& name, std::size_t bytes = 800)
      : key(key_named(name)), entry(entry_named(name, bytes)), path(entry_path(folder / "c", key)) {
    Store({.directory = folder / "c"}).load_or_build(key, [&] { return entry; });
  }

  // Loads as a new process would, building what is not there.
  Store::Result reload() {
    Store store({.directory = folder / "c", .diagnostics = warnings.sink()});
    Store::Result result = store.load_or_build(key, [&] { return entry; });
    bad_entries = store.stats().bad_entries;
    return result;
  }

  void require_rebuilt(const std::string& reason) {
    const Store::Result result = reload();
    REQUIRE(result.source == Source::built);
    REQUIRE(result.entry->payload == entry.payload);
    REQUIRE(bad_entries == 1);
    REQUIRE(warnings.count() == 1);
    REQUIRE_THAT(warnings.texts()[0], ContainsSubstring(path.native()));
    REQUIRE_THAT(warnings.texts()[0], ContainsSubstring(reason));
    REQUIRE(reload().source == Source::disk);
    REQUIRE(warnings.count() == 1);
  }

  TemporaryFolder folder;
  Key key;
  Entry entry;
  std::filesystem::path path;
  Warnings warnings;
  std::uint64_t bad_entries = 0;
};

}  // namespace

TEST_CASE("integrity: every single bit flip of an entry on disk is detected") {
  Published published("a");
  const Disk disk(published.folder / "c");
  std::vector<std::byte> bytes = tilewright::read_file(published.path);
  const tilewright::FileDescriptor file(::open(published.path.c_str(), O_WRONLY | O_CLOEXEC));
  std::size_t undetected = 0;
  const auto write_byte = [&](std::size_t at) {
    return ::pwrite(file.get(), &bytes[at], 1, static_cast<off_t>(at)) == 1;
  };
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::byte& byte = bytes[bit / 8];
    const std::byte good = byte;
    byte ^= std::byte(1 << bit % 8);
    if (!write_byte(bit / 8)) FAIL("pwrite");
    if (disk.load(published.key).status != LoadResult::Status::bad) ++undetected;
    byte = good;
    if (!write_byte(bit / 8)) FAIL("pwrite");
  }
  std::printf("[cache] %zu bit flips, %zu undetected\n", 8 * bytes.size(), undetected);
  REQUIRE(bytes.size() > 900);
  REQUIRE(undetected == 0);
  REQUIRE(disk.load(published.key).status == LoadResult::Status::hit);
}

TEST_CASE(
    "integrity: every truncation of an entry on disk is detected, and so is every extension") {
  Published published("a");
  const Disk disk(published.folder / "c");
  const std::vector<std::byte> bytes = tilewright::read_file(published.path);
  std::size_t undetected = 0;
  for (std::size_t size = bytes.size(); size-- > 0;) {
    if (::truncate(published.path.c_str(), static_cast<off_t>(size)) != 0) FAIL("truncate");
    if (disk.load(published.key).status != LoadResult::Status::bad) ++undetected;
  }
  for (std::size_t extra = 1; extra < 100; ++extra) {
    std::vector<std::byte> longer = bytes;
    longer.resize(bytes.size() + extra);
    tilewright::write_file(published.path, longer, 0600);
    if (disk.load(published.key).status != LoadResult::Status::bad) ++undetected;
  }
  std::printf("[cache] %zu truncations, 99 extensions, %zu undetected\n", bytes.size(), undetected);
  REQUIRE(undetected == 0);
}

TEST_CASE("integrity: a torn entry is rebuilt, not loaded, and set aside for who wants to look") {
  Published published("a");
  REQUIRE(::truncate(published.path.c_str(), 500) == 0);
  published.require_rebuilt("digest does not match");
  auto aside = published.path;
  REQUIRE(std::filesystem::file_size(aside.replace_extension(".bad")) == 500);
}

TEST_CASE("integrity: load sets a bad entry aside too, and tells once") {
  Published published("a");
  REQUIRE(::truncate(published.path.c_str(), 500) == 0);
  Store store({.directory = published.folder / "c", .diagnostics = published.warnings.sink()});
  REQUIRE(store.ls()[0].problem == "its digest does not match");
  REQUIRE(store.load(published.key) == nullptr);
  REQUIRE(store.load(published.key) == nullptr);
  REQUIRE(published.warnings.count() == 1);
  REQUIRE(store.stats().bad_entries == 1);
  REQUIRE(store.ls().empty());
}

TEST_CASE("integrity: entries that were swapped or renamed are detected") {
  Published published("a");
  const Key other = key_named("b");
  Store({.directory = published.folder / "c"}).load_or_build(other, [] {
    return entry_named("b", 800);
  });
  std::filesystem::rename(entry_path(published.folder / "c", other), published.path);
  published.require_rebuilt("the entry of another key");
}

TEST_CASE("integrity: what stands in an entry's place and is no plain file is refused") {
  Published published("a");
  const auto copy = published.folder / "copy";
  std::filesystem::rename(published.path, copy);

  SECTION("a symbolic link, even to a good entry") {
    std::filesystem::create_symlink(copy, published.path);
    published.require_rebuilt("symbolic link");
    REQUIRE(std::filesystem::exists(copy));
  }
  SECTION("a second name of a good entry") {
    std::filesystem::create_hard_link(copy, published.path);
    published.require_rebuilt("hard link");
  }
  SECTION("a FIFO, without waiting for a writer") {
    REQUIRE(::mkfifo(published.path.c_str(), 0600) == 0);
    published.require_rebuilt("not a regular file");
  }
  SECTION("a directory") {
    REQUIRE(::mkdir(published.path.c_str(), 0700) == 0);
    published.require_rebuilt("not a regular file");
  }
  SECTION("a file that others can write to") {
    std::filesystem::rename(copy, published.path);
    REQUIRE(::chmod(published.path.c_str(), 0620) == 0);
    published.require_rebuilt("others can write to it");
  }
  SECTION("somebody else's file") {
    if (::geteuid() != 0) return;  // only root can give files away
    std::filesystem::rename(copy, published.path);
    REQUIRE(::chown(published.path.c_str(), 65534, 65534) == 0);
    published.require_rebuilt("belongs to user 65534");
  }
  SECTION("a file that claims to be huge") {
    std::filesystem::rename(copy, published.path);
    REQUIRE(::truncate(published.path.c_str(), 300 << 20) == 0);
    published.require_rebuilt("too large");
  }
}

TEST_CASE("integrity: a shard that is a symbolic link is not followed") {
  Published published("a");
  const auto shard = published.path.parent_path();
  std::filesystem::rename(shard, published.folder / "elsewhere");
  std::filesystem::create_directory_symlink(published.folder / "elsewhere", shard);
  const Store::Result result = published.reload();
  REQUIRE(result.source == Source::built);
  REQUIRE(published.warnings.count() == 1);
  REQUIRE_THAT(published.warnings.texts()[0], ContainsSubstring("symbolic link"));
}

TEST_CASE("integrity: a bad entry that several processes find is rebuilt once") {
  Published published("a");
  REQUIRE(::truncate(published.path.c_str(), 500) == 0);
  const auto built = published.folder / "built";
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(start_child([&] {
      Store({.directory = published.folder / "c"}).load_or_build(published.key, [&] {
        count_in(built);
        ::usleep(50'000);
        return published.entry;
      });
      return 0;
    }));
  }
  for (const pid_t child : children) REQUIRE(wait_for_child(child) == 0);
  REQUIRE(std::filesystem::file_size(built) == 1);
}
