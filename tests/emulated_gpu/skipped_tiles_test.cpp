// What lies in tiles that a mask skips never reaches a row, whatever it is.

#include <limits>
#include <string>
#include <vector>

#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"
#include "verify/check.hpp"
#include "verify/random_inputs.hpp"

using namespace tilewright;

namespace {

constexpr std::int64_t kSide = 128;

// K and V of a block of keys are NaN, and the rows of the second block of queries skip it. All
// others keep it, so they are NaN.
std::vector<std::string> findings(int hole) {
  const Spec spec{.name = "hole",
                  .dtype = bf16,
                  .head_dim = 64,
                  .mask_mod = "q_idx / 128 != 1 || kv_idx / 128 != " + std::to_string(hole),
                  .outputs = {.lse = true}};
  const Shape shape{
      .batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 300, .kv_len = 4 * kSide};
  verify::Inputs inputs = verify::random_inputs(spec, shape, 7);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::int64_t begin = hole * kSide * spec.head_dim;
  for (std::int64_t i = begin; i < begin + kSide * spec.head_dim; ++i) {
    write_element(inputs.k.data(), bf16, i, nan);
    write_element(inputs.v.data(), bf16, i, nan);
  }
  verify::CheckOptions options;
  options.attention.device = Device::parse("cuda");
  return verify::check(spec, inputs.problem(), options).reasons();
}

}  // namespace

TEST_CASE(
    "emulated GPU: rows do not see NaN in tiles that they skip and others of their q tile visit") {
  for (const int hole : {0, 1, 2, 3}) {
    CAPTURE(hole);
    CHECK(findings(hole).empty());
  }
}
