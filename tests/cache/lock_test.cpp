#include "cache/lock.hpp"

#include <csignal>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cache/faults.hpp"
#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::cache;
using namespace cache_test;
using State = KeyLock::State;

namespace {

KeyLock try_lock(const TemporaryFolder& folder, const Key& key) {
  tilewright::FileDescriptor open_folder(
      ::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return KeyLock::try_acquire(std::move(open_folder), key, folder.path());
}

}  // namespace

TEST_CASE("lock: one holder for each key, and no file is left") {
  const TemporaryFolder folder;
  const Key key = key_named("a");
  {
    const KeyLock first = try_lock(folder, key);
    REQUIRE(first.state() == State::held);
    REQUIRE(try_lock(folder, key).state() == State::busy);
    REQUIRE(try_lock(folder, key_named("b")).state() == State::held);
    REQUIRE(files_below(folder.path()).size() == 1);
  }
  REQUIRE(files_below(folder.path()).empty());
  REQUIRE(try_lock(folder, key).state() == State::held);
}

TEST_CASE("lock: a killed holder's file can be locked at once") {
  const TemporaryFolder folder;
  const Key key = key_named("a");
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = start_child([&] {
    const KeyLock lock = try_lock(folder, key);
    if (lock.state() != State::held || ::write(ready[1], "x", 1) != 1) return 1;
    ::pause();
    return 0;
  });
  char byte;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  REQUIRE(try_lock(folder, key).state() == State::busy);
  ::kill(child, SIGKILL);
  REQUIRE(wait_for_child(child) == -SIGKILL);
  REQUIRE(files_below(folder.path()).size() == 1);
  REQUIRE(try_lock(folder, key).state() == State::held);
  REQUIRE(files_below(folder.path()).empty());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("lock: a child that was forked meanwhile does not keep the lock") {
  const TemporaryFolder folder;
  const Key key = key_named("a");
  int stop[2];
  REQUIRE(::pipe(stop) == 0);
  pid_t child = 0;
  {
    const KeyLock lock = try_lock(folder, key);
    child = start_child([&] {
      ::close(stop[1]);
      char byte;
      return static_cast<int>(::read(stop[0], &byte, 1));  // lives on with copies of the files
    });
  }
  REQUIRE(try_lock(folder, key).state() == State::held);
  ::close(stop[1]);
  REQUIRE(wait_for_child(child) == 0);
  ::close(stop[0]);
}

TEST_CASE("lock: exclusion holds while lock files come and go") {
  const TemporaryFolder folder;
  const Key key = key_named("a");
  const std::string inside = folder / "inside";
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(start_child([&] {
      for (int rounds = 0; rounds < 500;) {
        const KeyLock lock = try_lock(folder, key);
        if (lock.state() != State::held) continue;
        ++rounds;
        const int file = ::open(inside.c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file < 0) return 1;  // another process is inside
        ::close(file);
        ::unlink(inside.c_str());
      }
      return 0;
    }));
  }
  for (const pid_t child : children) REQUIRE(wait_for_child(child) == 0);
  REQUIRE(files_below(folder.path()).empty());
}

TEST_CASE("lock: where there is no flock, or a link in its place, the reason is told") {
  const TemporaryFolder folder;
  const Key key = key_named("a");
  {
    const faults::Fault no_flock(faults::flock_errno, ENOLCK);
    const KeyLock lock = try_lock(folder, key);
    REQUIRE(lock.state() == State::unavailable);
    REQUIRE_THAT(lock.problem(), Catch::Matchers::ContainsSubstring("No locks available"));
  }
  const std::string name = key.digest.hex() + ".lock";
  std::filesystem::remove(folder / name);
  std::filesystem::create_symlink("elsewhere", folder / name);
  REQUIRE(try_lock(folder, key).state() == State::unavailable);
  REQUIRE_FALSE(std::filesystem::exists(folder / "elsewhere"));
}
