// The fake driver's kernels do nothing, and nothing is faster: bench must not report it.
#include "runtime/compile/process.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/nvrtc.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("fake GPU: bench refuses to time a kernel that writes nothing") {
  if (test::nvrtc_is_missing()) return;
  const char* const hot = GENERATE("", "--hot");
  std::vector<std::string> words = {
      TILEWRIGHT_EXECUTABLE, "bench", "--device", "cuda", "--head-dim", "64", "--q-len", "64",
      "--budget-ms",         "1",     "--heads",  "1",    "--batch",    "1"};
  if (*hot != '\0') words.emplace_back(hot);
  const ProcessResult result = run_process(words);
  INFO(result.errors);
  REQUIRE(result.exit_status == 3);
  REQUIRE_THAT(result.errors, ContainsSubstring("unwritten"));
  REQUIRE(result.output.empty());
}

TEST_CASE("fake GPU: bench refuses a number of the CPU's threads") {
  if (test::nvrtc_is_missing()) return;
  const ProcessResult result =
      run_process({TILEWRIGHT_EXECUTABLE, "bench", "--device", "cuda", "--threads", "1"});
  CHECK(result.exit_status == 2);
  CHECK_THAT(result.errors, ContainsSubstring("--threads is of the CPU, and calls run on cuda"));
}
