#include "runtime/compile/process.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/compile/temporary_directory.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

ProcessResult shell(const std::string& script, const ProcessOptions& options = {}) {
  return run_process({"/bin/sh", "-c", script}, options);
}

}  // namespace

TEST_CASE("process: both streams and the exit status come back") {
  const ProcessResult result = shell("echo out; echo err >&2; exit 7");
  CHECK(result.output == "out\n");
  CHECK(result.errors == "err\n");
  CHECK(result.exit_status == 7);
  CHECK_FALSE(result.succeeded());
  CHECK(result.describe_end() == "exit status 7");
}

TEST_CASE("process: arguments reach the program as they are, with no shell in between") {
  const ProcessResult result = run_process({"printf", "%s|", "a b", "$HOME", "*", ";", "'\"", ""});
  CHECK(result.output == "a b|$HOME|*|;|'\"||");
}

TEST_CASE("process: large output on both streams neither blocks nor is lost") {
  const ProcessResult result =
      shell("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; echo end");
  CHECK(result.output.size() == 3000004);
  CHECK(result.errors.size() == 3000000);
  CHECK_FALSE(result.truncated);
}

TEST_CASE("process: output beyond the limit is dropped, and the program still ends") {
  const ProcessResult result = shell("head -c 100000 /dev/zero", {.output_limit = 1000});
  CHECK(result.output.size() == 1000);
  CHECK(result.truncated);
  CHECK(result.succeeded());
}

TEST_CASE("process: stdin is empty") {
  CHECK(shell("cat; echo done").output == "done\n");
}

TEST_CASE("process: the environment is changed for the program alone") {
  setenv("TILEWRIGHT_TEST_VARIABLE", "outer", 1);
  const std::string script = "echo ${TILEWRIGHT_TEST_VARIABLE-none} $LC_ALL";
  CHECK(shell(script, {.environment = {{"LC_ALL", "C"}}}).output == "outer C\n");
  CHECK(
      shell(script, {.environment = {{"TILEWRIGHT_TEST_VARIABLE", std::nullopt}, {"LC_ALL", "C"}}})
          .output == "none C\n");
  CHECK(std::string(std::getenv("TILEWRIGHT_TEST_VARIABLE")) == "outer");
  unsetenv("TILEWRIGHT_TEST_VARIABLE");
}

TEST_CASE("process: it runs in the directory that was asked for") {
  const TemporaryDirectory directory("test");
  CHECK(shell("pwd -P", {.directory = directory.path()}).output ==
        std::filesystem::canonical(directory.path()).string() + "\n");
}

TEST_CASE("process: a program that hangs is killed together with its children") {
  const TemporaryDirectory directory("test");
  const auto start = std::chrono::steady_clock::now();
  const ProcessResult result =
      shell("sleep 60 & echo $! > child; wait",
            {.directory = directory.path(), .timeout = std::chrono::milliseconds(200)});
  const auto elapsed = std::chrono::steady_clock::now() - start;
  CHECK(result.timed_out);
  CHECK(result.signal == SIGKILL);
  CHECK(elapsed < std::chrono::seconds(20));
  CHECK_THAT(result.describe_end(), ContainsSubstring("killed after"));
  // The grandchild is gone, or a zombie until init reaps it.
  const std::string state =
      shell("sleep 0.1; ps -o stat= -p $(cat child)", {.directory = directory.path()}).output;
  CHECK((state.empty() || state[0] == 'Z'));
}

TEST_CASE("process: a program that never stops writing is killed in time") {
  const ProcessResult result =
      run_process({"yes"}, {.timeout = std::chrono::milliseconds(100), .output_limit = 100});
  CHECK(result.timed_out);
  CHECK(result.output.size() == 100);
}

TEST_CASE("process: it works where this process has no stdin and no stdout") {
  const int input = dup(0), output = dup(1);
  close(0);
  close(1);
  const ProcessResult result = shell("echo out; echo err >&2");
  dup2(input, 0);
  dup2(output, 1);
  close(input);
  close(output);
  CHECK(result.output == "out\n");
  CHECK(result.errors == "err\n");
}

TEST_CASE("process: a child that outlives the program does not keep the caller waiting") {
  const auto start = std::chrono::steady_clock::now();
  const ProcessResult result = shell("sleep 5 & echo started");
  CHECK(result.output == "started\n");
  CHECK(result.succeeded());
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(4));
}

TEST_CASE("process: a program that crashes reports its signal") {
  const ProcessResult result = shell("kill -SEGV $$");
  CHECK(result.signal == SIGSEGV);
  CHECK_FALSE(result.exit_status.has_value());
  CHECK_THAT(result.describe_end(), ContainsSubstring("signal 11"));
}

TEST_CASE("process: a program that cannot be started is an error with the name and a hint") {
  REQUIRE_THROWS_WITH(run_process({"tilewright-no-such-program"}),
                      ContainsSubstring("error[compiler]") &&
                          ContainsSubstring("tilewright-no-such-program") &&
                          ContainsSubstring("install it"));
  REQUIRE_THROWS_WITH(run_process({"/etc/passwd"}, {.error_code = ErrorCode::internal}),
                      ContainsSubstring("error[internal]"));
  REQUIRE_THROWS_AS(run_process({}), Error);
  REQUIRE_THROWS_AS(run_process({"true"}, {.directory = "/no/such/directory"}), Error);
}

TEST_CASE("process: no free file descriptor is an error, and nothing leaks") {
  rlimit before = {};
  getrlimit(RLIMIT_NOFILE, &before);
  const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(next);
  for (int extra = 0; extra < 4; ++extra) {  // fails at each of the descriptors it needs
    const rlimit tight = {static_cast<rlim_t>(next + extra), before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &tight);
    std::string message;
    try {
      run_process({"true"});
    } catch (const Error& error) {
      message = error.what();
    }
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK_THAT(message, ContainsSubstring("ulimit -n"));
  }
  const int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(after);
  CHECK(after == next);
}

TEST_CASE("process: the program inherits no descriptor and no signal mask") {
  const int leaky = open("/dev/null", O_RDONLY);  // without O_CLOEXEC, as other libraries do
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const ProcessResult result = shell("ls /proc/self/fd | wc -l; grep SigBlk /proc/self/status");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  close(leaky);
  CHECK_THAT(result.output, ContainsSubstring("0000000000000000"));
  CHECK(std::stoi(result.output) == 4);  // 0, 1, 2 and the directory that ls reads
}

TEST_CASE("process: many threads may run programs at once, and each gets its own output") {
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t, &failures] {
      for (int i = 0; i < 10; ++i) {
        const std::string word = std::to_string(t * 1000 + i);
        const ProcessResult result = run_process({"echo", word});
        failures += result.output != word + "\n" || !result.succeeded();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
}

TEST_CASE("process: with SIGCHLD ignored the end is unknown, and that is said") {
  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGCHLD, &ignore, &before);
  const ProcessResult result = shell("echo out");
  sigaction(SIGCHLD, &before, nullptr);
  CHECK(result.output == "out\n");
  CHECK_FALSE(result.succeeded());
  CHECK_THAT(result.describe_end(), ContainsSubstring("SIGCHLD"));
}
