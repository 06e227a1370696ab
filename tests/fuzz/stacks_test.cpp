#include "fuzz/stacks.hpp"

#include <csignal>
#include <regex>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "base/activity.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/holds_soon.hpp"

using namespace tilewright;
using namespace tilewright::verify::fuzz;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("stacks: each thread of a process says where it is, and the process goes on") {
  const int file = make_stack_file();
  REQUIRE(file >= 0);
  int ends[2] = {};
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[1]);
    answer_with_stacks(file);
    const Activity activity("waits for", "the end of the test");
    std::thread([&] {
      char byte = 0;
      while (::read(ends[0], &byte, 1) == 1) {
      }
      ::_exit(7);
    }).join();
    ::_exit(1);
  }
  ::close(ends[0]);
  std::string text;
  REQUIRE(test::holds_soon([&] {
    text = ask_for_stacks(child, file);
    return text.find("waits for the end of the test") != std::string::npos &&
           std::regex_search(text, std::regex("[ (_]read"));
  }));
  CHECK_THAT(text, ContainsSubstring("waits for the end of the test"));
  CHECK_THAT(text, ContainsSubstring("thread " + std::to_string(child)));
  CHECK_THAT(text, ContainsSubstring("join") || ContainsSubstring("futex") ||
                       ContainsSubstring("pthread"));
  CHECK_THAT(text, !ContainsSubstring("no answer"));
  CHECK_THAT(describe_processes(::getsid(child)),
             ContainsSubstring("process " + std::to_string(child)));
  ::close(ends[1]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 7);
  ::close(file);
}

TEST_CASE("stacks: a thread that blocks the signal is named") {
  const int file = make_stack_file();
  const pid_t child = ::fork();
  if (child == 0) {
    answer_with_stacks(file);
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    for (;;) ::pause();
  }
  CHECK(test::holds_soon([&] {
    return ask_for_stacks(child, file).find("it blocks the signal") != std::string::npos;
  }));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(file);
}
