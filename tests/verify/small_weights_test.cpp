// Weights that are below 2^-126, and 0 in kernels, as next to a sink that is far above all scores.
#include "tests/support/small_weights.hpp"

#include <cmath>
#include <cstdint>
#include <string>

#include "tests/support/catch.hpp"
#include "verify/check.hpp"

using namespace tilewright;

TEST_CASE("small weights: next to a sink that is 80 to 110 above all scores they may be 0") {
  for (const DType dtype : {f32, bf16}) {
    for (const int sink : {80, 86, 88, 90, 95, 104, 110}) {
      CAPTURE(to_string(dtype), sink);
      CHECK(test::small_weights_findings(dtype, sink, Device::cpu()) == std::vector<std::string>());
    }
  }
}

TEST_CASE("small weights: what is lost is little, and what is sure is judged") {
  const test::SmallWeights call(f32, 90);
  const auto is_seen = [&](const auto& change) {
    verify::CheckOptions options = call.options(Device::cpu());
    options.theirs = verify::Checker(call.spec, options).expected(call.problem()).reference.values;
    change(*options.theirs);
    return !verify::check(call.spec, call.problem(), options).their_verdict->ok;
  };
  CHECK_FALSE(is_seen([](verify::AttentionValues& values) {
    for (double& element : values.out.data) element = 0;
    for (double& element : values.weights.data) element = 0;
  }));
  CHECK(is_seen([](verify::AttentionValues& values) { values.out.data[5] = 1e-36; }));
  CHECK(is_seen([](verify::AttentionValues& values) { values.weights.data[5] = 1e-36; }));
  const test::SmallWeights sure(f32, 70);
  verify::CheckOptions options = sure.options(Device::cpu());
  options.theirs = verify::Checker(sure.spec, options).expected(sure.problem()).reference.values;
  for (double& element : options.theirs->out.data) element = 0;
  CHECK_FALSE(verify::check(sure.spec, sure.problem(), options).their_verdict->ok);
}
