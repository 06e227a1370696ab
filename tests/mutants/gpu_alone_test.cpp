#include "tests/mutants/gpu_alone.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/compile/temporary_directory.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using mutants::run_with_gpu_alone;
using namespace std::chrono_literals;

namespace {

// What a child says that does `work`, and its status.
template <typename Work>
std::string said_by_child(const Work& work, int& status) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    work();
    ::_exit(3);
  }
  ::close(ends[1]);
  std::string said(100, '\0');
  const ssize_t size = ::read(ends[0], said.data(), said.size());
  said.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  ::close(ends[0]);
  ::waitpid(child, &status, 0);
  return said;
}

}  // namespace

TEST_CASE("mutants: a first call that never ends ends its process with a report") {
  const TemporaryDirectory folder("alone");
  const std::string lock = (folder.path() / "lock").string();
  int status = -1;
  const std::string said = said_by_child(
      [&] {
        run_with_gpu_alone(lock, 1, "it never ends", [] {
          while (true) ::pause();
        });
      },
      status);
  CHECK(said == "it never ends");
  CHECK(status == 0);
}

TEST_CASE("mutants: whoever comes after one that never ends waits until that one is gone") {
  const TemporaryDirectory folder("alone");
  const std::string lock = (folder.path() / "lock").string();
  int starts[2];
  REQUIRE(::pipe(starts) == 0);
  // Gives the lock back long before it ends, as a process does whose GPU context is being ended.
  const pid_t before = ::fork();
  if (before == 0) {
    const int file = ::open(lock.c_str(), O_CREAT | O_RDWR, 0600);
    const pid_t own = ::getpid();
    const bool written = ::flock(file, LOCK_EX) == 0 &&
                         ::pwrite(file, &own, sizeof own, 0) == sizeof own &&
                         ::write(starts[1], "x", 1) == 1;
    ::close(file);
    std::this_thread::sleep_for(500ms);
    ::_exit(written ? 0 : 1);
  }
  char started = 0;
  REQUIRE(::read(starts[0], &started, 1) == 1);
  int status = -1;
  pid_t ended = 0;
  run_with_gpu_alone(lock, 60, "", [&] { ended = ::waitpid(before, &status, WNOHANG); });
  CHECK(ended == before);
  CHECK(status == 0);
  ::close(starts[0]);
  ::close(starts[1]);
}

TEST_CASE("mutants: a first call has the lock, gives it back, and leaves no alarm") {
  const TemporaryDirectory folder("alone");
  const std::string lock = (folder.path() / "lock").string();
  const auto is_free = [&] {
    const int file = ::open(lock.c_str(), O_RDWR | O_CLOEXEC);
    const bool free = ::flock(file, LOCK_EX | LOCK_NB) == 0;
    ::close(file);
    return free;
  };
  bool was_free = true;
  run_with_gpu_alone(lock, 60, "", [&] { was_free = is_free(); });
  CHECK(!was_free);
  CHECK(is_free());
  CHECK(::alarm(0) == 0);
  struct sigaction action = {};
  ::sigaction(SIGALRM, nullptr, &action);
  CHECK(action.sa_handler == SIG_DFL);
}
