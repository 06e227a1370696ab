// bench --suite context_parallel where it cannot run.
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("cli context parallel: a machine without two GPUs is told so") {
  const Ended ended = start({"bench", "--suite", "context_parallel", "--device", "cpu"});
  CHECK(ended.status == 3);
  CHECK_THAT(ended.err,
             ContainsSubstring("--suite context_parallel needs two GPUs, and this machine has 0"));
}

TEST_CASE("cli context parallel: the suite makes calls of its own") {
  const Ended ended =
      start({"bench", "--suite", "context_parallel", "--device", "cpu", "--only", "causal"});
  CHECK(ended.status == 2);
  CHECK_THAT(ended.err, ContainsSubstring("--suite context_parallel takes no --only"));
}
