// What check says that it takes, and what it takes.
#include "cli/check_memory.hpp"

#include <string>

#include <sys/resource.h>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;

namespace {

// Of the greatest process that ended.
double peak_of_children() {
  rusage usage = {};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

}  // namespace

// Few columns keep the reference quick; compilers take less than the call.
TEST_CASE("cli: check knows the memory that it takes") {
  constexpr double kElements = 8.0 * 8192 * 64, kFew = 8.0 * 16 * 64, kProcess = 30e6;
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "f32", "head_dim": 64,
    "outputs": ["out", "lse"], "gradients": ["q", "k", "v"]})json");
  const Ended ended = on_cpu({"check", spec, "--inputs", "random:1,8,8,8192,16"});
  INFO(ended.err << ended.out);
  REQUIRE(ended.status == 0);
  const double tensors = 4 * kElements * 4;  // q, out, dout and dq
  const double taken = peak_of_children() - tensors - kProcess;
  const double expected = cli::bytes_of_check({.q = kElements,
                                               .k = kFew,
                                               .v = kFew,
                                               .out = kElements,
                                               .rows = 8 * 8192,
                                               .has_gradients = true});
  CAPTURE(taken, expected);
  CHECK(expected > 0.9 * taken);
  CHECK(expected < 1.25 * taken);
}
