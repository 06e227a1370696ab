#include "runtime/compile/session.hpp"

#include <filesystem>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/compile/spawn.hpp"
#include "runtime/compile/temporary_directory.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/holds_soon.hpp"

using namespace tilewright;
using test::holds_soon;
namespace fs = std::filesystem;

TEST_CASE("session: children in groups of their own and orphans belong to it, until it is killed") {
  const TemporaryDirectory directory("session");
  // Monitor mode gives each child a process group; the subshell's child loses its parent.
  const pid_t leader = spawn({"bash", "-c", "set -m; sleep 60 & (sleep 60 &); touch ready; wait"},
                             {.directory = directory.path(), .new_session = true});
  REQUIRE(holds_soon([&] { return fs::exists(directory.path() / "ready"); }));
  REQUIRE(holds_soon([&] { return processes_of_session(leader).size() == 3; }));
  kill_session(leader);
  int status = 0;
  REQUIRE(::waitpid(leader, &status, 0) == leader);
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK(holds_soon([&] { return processes_of_session(leader).empty(); }));
}

TEST_CASE("session: a program's name is not taken for its state") {
  const TemporaryDirectory directory("session");
  const fs::path program = directory.path() / "x) Z 1 1 1";
  fs::create_symlink("/bin/sleep", program);
  const pid_t leader = spawn({program.string(), "60"}, {.new_session = true});
  REQUIRE(holds_soon([&] { return processes_of_session(leader).size() == 1; }));
  CHECK(processes_of_session(leader).front() == leader);
  CHECK(holds_soon([&] {
    const std::vector<std::string> all = describe_session(leader);
    return all.size() == 1 && all.front().starts_with("x) Z 1 1 1, 0.00 s of processor time: ") &&
           !all.front().ends_with("running");
  }));
  kill_session(leader);
  ::waitpid(leader, nullptr, 0);
}

TEST_CASE("session: what runs is told from what sleeps, with the time that it used") {
  const pid_t leader = spawn({"sh", "-c", "while :; do :; done"}, {.new_session = true});
  const auto describes = [&](const char* pattern) {
    const std::vector<std::string> all = describe_session(leader);
    return all.size() == 1 && Catch::Matchers::Matches(pattern).match(all.front());
  };
  CHECK(holds_soon([&] { return describes("sh, 0\\.[1-9]\\d s of processor time: running"); }));
  kill_session(leader);
  ::waitpid(leader, nullptr, 0);
  CHECK(describe_session(leader).empty());
}

TEST_CASE("session: the caller's own life is spared") {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    const pid_t other = ::fork();
    if (other == 0) {
      ::pause();
      ::_exit(0);
    }
    kill_session(::getpid());
    int status = 0;
    ::waitpid(other, &status, 0);
    ::_exit(WIFSIGNALED(status) ? 7 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 7);
}
