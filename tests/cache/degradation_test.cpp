// The disk says no: what was built is returned all the same, and there is one warning.

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cache/store.hpp"
#include "tests/cache/faults.hpp"
#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

using namespace tilewright::cache;
using namespace cache_test;
using Catch::Matchers::ContainsSubstring;

namespace {

// Builds three keys, twice; they must come from build and then from memory, with one warning that
// has `reason` in it. Returns 0, or what was wrong as a child's exit status.
int use_broken(const std::optional<std::filesystem::path>& directory, const std::string& reason,
               std::size_t bytes = 100) {
  Warnings warnings;
  Store store({.directory = directory, .diagnostics = warnings.sink()});
  for (const Source expected : {Source::built, Source::memory}) {
    for (const char* name : {"a", "b", "c"}) {
      const auto result =
          store.load_or_build(key_named(name), [&] { return entry_named(name, bytes); });
      if (result.source != expected) return 1;
      if (result.entry->payload != entry_named(name, bytes).payload) return 2;
    }
  }
  store.ls();
  store.clear();
  if (store.stats().failures == 0) return 3;
  for (const std::string& text : warnings.texts()) {
    if (text.find(reason) == std::string::npos) {
      std::fprintf(stderr, "unexpected: %s\n", text.c_str());
      return 4;
    }
  }
  return warnings.count() == 1 ? 0 : 5;
}

// What a child returns that is no root and owns `c`, which is made in the folder.
int run_as_owner_of_c(const TemporaryFolder& folder, const std::function<int()>& work) {
  if (::chmod(folder.path().c_str(), 0755) != 0) return 9;
  return run_in_child([&] {
    std::filesystem::create_directory(folder / "c");
    if (::geteuid() == 0 && ::chown((folder / "c").c_str(), 65534, 65534) != 0) return 10;
    become_nobody();
    return work();
  });
}

}  // namespace

TEST_CASE("degradation: no directory is known") {
  REQUIRE(use_broken(std::nullopt, "no directory is known") == 0);
}

TEST_CASE("degradation: the directory cannot be made") {
  REQUIRE(use_broken("/proc/tilewright", "/proc/tilewright") == 0);
  REQUIRE(use_broken("/dev/null/tilewright", "Not a directory") == 0);
}

TEST_CASE("degradation: a sink may ask the store for the key that its message is about") {
  int asked = 0;
  std::optional<Store> store;
  const auto ask = [&] {
    const auto found = store->load_or_build(key_named("a"), [] { return entry_named("a", 100); });
    if (found.source == Source::memory) ++asked;
  };
  store.emplace(Store::Options{.directory = "/dev/null/cache",
                               .diagnostics = [&](tilewright::Severity, std::string_view) {
                                 ask();
                                 std::thread(ask).join();  // nor does another thread wait
                                 throw 1;                  // is dropped
                               }});
  REQUIRE(store->load_or_build(key_named("a"), [] { return entry_named("a", 100); }).source ==
          Source::built);
  REQUIRE(asked == 2);
}

TEST_CASE("degradation: the directory is somebody else's, a link, or open to others") {
  const TemporaryFolder folder;
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
  REQUIRE(use_broken(folder.path(), "others can write") == 0);
  REQUIRE(::chmod(folder.path().c_str(), 0700) == 0);
  std::filesystem::create_directory_symlink("real", folder / "link");
  REQUIRE(use_broken(folder / "link", "symbolic link") == 0);
  REQUIRE(files_below(folder.path()).size() == 1);
}

TEST_CASE("degradation: a directory that is refused is not taken for an empty one") {
  const TemporaryFolder folder;
  const Store store({.directory = folder / "c", .diagnostics = {}});
  REQUIRE(store.problem().empty());  // not there yet
  std::filesystem::create_directory(folder / "c");
  REQUIRE(::chmod((folder / "c").c_str(), 0777) == 0);
  REQUIRE(store.ls().empty());
  REQUIRE_THAT(store.problem(), ContainsSubstring("others can write"));
}

TEST_CASE("degradation: a folder of entries that is refused does not pass for an empty one") {
  const TemporaryFolder folder;
  Store store({.directory = folder.path()});
  store.load_or_build(key_named("a"), [] { return entry_named("a"); });
  REQUIRE(store.problem().empty());
  const auto shard = entry_path(folder.path(), key_named("a")).parent_path();
  REQUIRE(::chmod(shard.c_str(), 0777) == 0);
  REQUIRE_THAT(store.problem(),
               ContainsSubstring(shard.native()) && ContainsSubstring("others can write"));
}

TEST_CASE("degradation: a bad entry that cannot be set aside is not said to be") {
  const TemporaryFolder folder;
  REQUIRE(run_as_owner_of_c(folder, [&] {
            const Key key = key_named("a");
            Store({.directory = folder / "c"}).load_or_build(key, [] { return entry_named("a"); });
            const auto path = entry_path(folder / "c", key);
            std::filesystem::resize_file(path, 10);
            if (::chmod(path.parent_path().c_str(), 0500) != 0) return 11;
            Warnings warnings;
            Store store({.directory = folder / "c", .diagnostics = warnings.sink()});
            store.load_or_build(key, [] { return entry_named("a"); });
            if (warnings.count() == 0) return 12;
            const std::string expected = "it cannot be set aside: Permission denied";
            return warnings.texts()[0].find(expected) != std::string::npos ? 0 : 13;
          }) == 0);
}

TEST_CASE("degradation: the directory may be entered but not written (EACCES)") {
  const TemporaryFolder folder;
  REQUIRE(run_as_owner_of_c(folder, [&] {
            if (::chmod((folder / "c").c_str(), 0500) != 0) return 11;
            return use_broken(folder / "c", "Permission denied");
          }) == 0);
}

TEST_CASE("degradation: entries of a directory that cannot be written are still used") {
  const TemporaryFolder folder;
  REQUIRE(run_as_owner_of_c(folder, [&] {
            const Key key = key_named("a");
            Store({.directory = folder / "c"}).load_or_build(key, [] { return entry_named("a"); });
            for (const auto& item : {folder / "c" / "v1", folder / "c"}) {
              if (::chmod(item.c_str(), 0500) != 0) return 11;
            }
            Warnings warnings;
            Store store({.directory = folder / "c", .diagnostics = warnings.sink()});
            if (store.load_or_build(key, [] { return entry_named("b"); }).source != Source::disk) {
              return 12;
            }
            return warnings.count() == 0 ? 0 : 13;
          }) == 0);
}

TEST_CASE("degradation: a file may not grow further (EFBIG), and no part of it is left") {
  const TemporaryFolder folder;
  REQUIRE(run_in_child([&] {
            const rlimit limit{1000, 1000};
            ::setrlimit(RLIMIT_FSIZE, &limit);
            return use_broken(folder / "c", "File too large", 5000);
          }) == 0);
  REQUIRE(files_below(folder.path()).empty());
}

TEST_CASE("degradation: the disk is full (ENOSPC), and no part of an entry is left") {
  const TemporaryFolder folder;
  constexpr int kCannotMount = 77;
  const int status = run_in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0) {
      return kCannotMount;
    }
    const int result = use_broken(folder / "c", "No space left on device", 100'000);
    return result != 0 ? result : static_cast<int>(files_below(folder.path()).size());
  });
  if (status == kCannotMount) {
    tilewright::test::say_skipped("degradation: a small file system cannot be mounted here");
    return;
  }
  REQUIRE(status == 0);
}

TEST_CASE("degradation: the file system is read-only (EROFS)") {
  const TemporaryFolder folder;
  constexpr int kCannotMount = 77;
  const int status = run_in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.path().c_str(), "tmpfs", MS_RDONLY, "mode=0700") != 0) {
      return kCannotMount;
    }
    return use_broken(folder.path(), "Read-only file system");
  });
  if (status == kCannotMount) {
    tilewright::test::say_skipped("degradation: a read-only file system cannot be mounted here");
    return;
  }
  REQUIRE(status == 0);
}

TEST_CASE("degradation: the disk fails while an entry is synced (EIO)") {
  const TemporaryFolder folder;
  const faults::Fault fault(faults::fsync_errno, EIO);
  REQUIRE(use_broken(folder.path(), "Input/output error") == 0);
  REQUIRE(files_below(folder.path()).empty());
}

TEST_CASE("degradation: an entry cannot be renamed, and its temporary file is removed") {
  const TemporaryFolder folder;
  const faults::Fault fault(faults::renameat_errno, ENOSPC);
  REQUIRE(use_broken(folder.path(), "No space left on device") == 0);
  REQUIRE(files_below(folder.path()).empty());
}

TEST_CASE("degradation: there is no flock, but entries are stored all the same") {
  const TemporaryFolder folder;
  const faults::Fault fault(faults::flock_errno, ENOTSUP);
  Warnings warnings;
  const Key key = key_named("a");
  Store({.directory = folder.path(), .diagnostics = warnings.sink()}).load_or_build(key, [] {
    return entry_named("a");
  });
  REQUIRE(warnings.count() == 1);
  REQUIRE_THAT(warnings.texts()[0], ContainsSubstring("not supported"));
  Store store({.directory = folder.path(), .diagnostics = warnings.sink()});
  REQUIRE(store.load_or_build(key, [] { return entry_named("b"); }).source == Source::disk);
}

TEST_CASE("degradation: the process has no file descriptors left (EMFILE)") {
  const TemporaryFolder folder;
  REQUIRE(run_in_child([&] {
            const rlimit limit{16, 16};
            ::setrlimit(RLIMIT_NOFILE, &limit);
            while (::open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) continue;
            return use_broken(folder.path(), "Too many open files");
          }) == 0);
}

TEST_CASE("degradation: an entry that is too large to store is returned") {
  const TemporaryFolder folder;
  Warnings warnings;
  Store store({.directory = folder.path(), .diagnostics = warnings.sink()});
  const auto result = store.load_or_build(key_named("a"), [] {
    Entry entry = entry_named("a");
    entry.metadata["log"] = std::string(kMaxMetadataValue + 1, 'x');
    return entry;
  });
  REQUIRE(result.source == Source::built);
  REQUIRE(warnings.count() == 1);
  REQUIRE_THAT(warnings.texts()[0], ContainsSubstring("\"log\" of a cache entry is too long"));
  REQUIRE(files_below(folder.path()).empty());
}

TEST_CASE("degradation: a directory that was mended is used without a restart") {
  const TemporaryFolder folder;
  Warnings warnings;
  Store store({.directory = folder.path(), .diagnostics = warnings.sink()});
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
  store.load_or_build(key_named("a"), [] { return entry_named("a"); });
  REQUIRE(files_below(folder.path()).empty());
  REQUIRE(::chmod(folder.path().c_str(), 0700) == 0);
  store.load_or_build(key_named("b"), [] { return entry_named("b"); });
  REQUIRE(files_below(folder.path()).size() == 1);
  REQUIRE(warnings.count() == 1);
}
