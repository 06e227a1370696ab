// Scores near the limits of their type, as padding masks have them, on the CPU.
// tests/emulated_gpu/huge_scores_test.cpp runs the same on kernels for GPUs.

#include "tests/support/huge_scores.hpp"

#include "tests/support/catch.hpp"

using namespace tilewright;
using test::findings;

TEST_CASE("huge scores: rows of the least number, and scores up to the greatest, are right") {
  const auto huge = GENERATE(test::padded_scores(bf16, f32), test::padded_scores(f16, f16),
                             test::padded_scores(f32, f32),
                             test::padded_scores(bf16, bf16, "q_idx >= kv_idx - 150"));
  CHECK(findings(huge, Device::cpu()) == std::vector<std::string>());
}

TEST_CASE("huge scores: steep slopes and large factors") {
  CHECK(findings(test::steep_slopes(bf16), Device::cpu()) == std::vector<std::string>());
  CHECK(findings(test::folded_factors(f16), Device::cpu()) == std::vector<std::string>());
}
