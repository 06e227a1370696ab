// Weights below 2^-126, which exp2 makes 0, on kernels for GPUs.
// tests/verify/small_weights_test.cpp has the CPU's.

#include "tests/support/small_weights.hpp"

#include "tests/support/catch.hpp"

using namespace tilewright;

TEST_CASE("emulated GPU: weights next to a sink that is far above all scores may be 0") {
  const std::string name = GENERATE(as<std::string>(), "hopper", "portable");
  const int sink = GENERATE(80, 86, 90, 95, 104);
  CAPTURE(name, sink);
  const std::vector<std::string> none;
  CHECK(test::small_weights_findings(bf16, sink, Device::parse("cuda"), name) == none);
  if (name == "hopper") return;
  CHECK(test::small_weights_findings(f32, sink, Device::parse("cuda"), name) == none);
}
