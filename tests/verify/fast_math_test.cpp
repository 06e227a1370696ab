#include "verify/fast_math.hpp"

#include "tests/support/catch.hpp"

using namespace tilewright;
using tilewright::verify::uses_fast_math;

TEST_CASE("fast math: the CPU's functions are no fast ones") {
  Spec spec;
  spec.score_mod = "tanh(score)";
  CHECK_FALSE(uses_fast_math(spec, Device::cpu()));
}
