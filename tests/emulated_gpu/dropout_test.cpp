// Dropout on the emulated GPU: its draws one by one, and calls against the reference.
#include "tests/support/dropout.hpp"

using namespace tilewright;

namespace {

const Device& gpu() {
  static const Device device = Device::parse("cuda");
  return device;
}

}  // namespace

TEST_CASE("dropout on a GPU: the draws of dense calls", "[every-kind]") {
  dropout_calls::check_dense_draws(gpu(), 0, 0);
  dropout_calls::check_dense_draws(gpu(), -20, 5);
}

TEST_CASE("dropout on a GPU: the draws of packed calls", "[every-kind]") {
  dropout_calls::check_packed_draws(gpu());
}

TEST_CASE("dropout on a GPU: calls against the reference", "[every-kind]") {
  for (const std::string& fields : dropout_calls::forward_fields()) {
    CAPTURE(fields);
    dropout_calls::check(dropout_calls::spec_of(fields), gpu());
  }
}

TEST_CASE("dropout on a GPU: a probability of 0 changes nothing") {
  const std::string tactic =
      R"("tactic": {"name": "portable", "q_tile": 64, "kv_tile": 32, "warps": 4}, )";
  dropout_calls::check_no_dropout(gpu(), tactic + R"("dtype": "bf16")");
  dropout_calls::check_no_dropout(
      gpu(), R"("tactic": "portable", "dtype": "f32", "mask_mod": "q_idx >= kv_idx")");
}

TEST_CASE("dropout on a GPU: a seed of 64 bits comes in a buffer") {
  dropout_calls::check_seed_buffer(gpu());
}
