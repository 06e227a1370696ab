// Dropout on the emulated GPU: its draws one by one, and calls, gradients and weights against the
// reference.
#include "tests/support/dropout.hpp"

#include "generator/tactic/tactic.hpp"
#include "tests/support/dropout_gradients.hpp"

using namespace tilewright;

namespace {

const Device& gpu() {
  static const Device device = Device::parse("cuda");
  return device;
}

// With the tactic that is chosen, and with the portable one.
std::vector<Spec> on_each_tactic(const Spec& spec) {
  std::vector<Spec> specs = {spec};
  if (choose_tactic(spec, Target::parse("sm_90a")).name() == "portable") return specs;
  specs.push_back(spec);
  specs.back().tactic = TacticSpec{"portable", {}};
  return specs;
}

}  // namespace

TEST_CASE("dropout on a GPU: the draws of dense calls", "[every-kind]") {
  dropout_calls::check_draws(gpu());
  dropout_calls::check_draws(gpu(), TacticSpec{"portable", {}});
}

TEST_CASE("dropout on a GPU: the draws of packed calls", "[every-kind]") {
  dropout_calls::check_packed_draws(gpu(), f32);
  dropout_calls::check_packed_draws(gpu(), bf16);
}

TEST_CASE("dropout on a GPU: calls against the reference", "[every-kind]") {
  for (const std::string& fields : dropout_calls::forward_fields()) {
    for (const Spec& spec : on_each_tactic(dropout_calls::spec_of(fields))) {
      CAPTURE(fields, spec.tactic.has_value());
      dropout_calls::check(spec, gpu());
    }
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

TEST_CASE("dropout on a GPU: gradients against the reference", "[every-kind]") {
  for (const std::string& fields : dropout_calls::gradient_fields()) {
    CAPTURE(fields);
    dropout_calls::check_gradients(gpu(), fields);
  }
  for (const DType dtype : {f32, bf16}) {
    const std::string fields = R"("gradients": ["q", "k", "v"], "dropout": "0.5", "dtype": ")";
    dropout_calls::check_gradients(gpu(), fields + std::string(to_string(dtype)) + '"', 3);
  }
}

TEST_CASE("dropout on a GPU: the output weights", "[every-kind]") {
  for (const std::string& fields : dropout_calls::forward_fields()) {
    CAPTURE(fields);
    if (fields.find("packed") == std::string::npos) dropout_calls::check_weights(gpu(), fields);
  }
}
