#include "runtime/cuda/score_factors.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using cuda::FoldedFactors;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Of scalars `a` and `cap`, in this order.
FoldedFactors fold(const std::string& score_mod, double cap, double a = 1, DType dtype = bf16) {
  const Spec spec{.dtype = dtype,
                  .head_dim = 64,
                  .score_mod = score_mod,
                  .scalars = {{"a", {.dtype = f32}}, {"cap", {.dtype = f32, .default_value = 50}}}};
  return cuda::ScoreFactors(SpecFacts(spec)).fold({a, cap});
}

const std::string kSoftcap = "cap * tanh(score / cap)";

TEST_CASE("score factors: scalars that multiply and divide") {
  const FoldedFactors cap = fold(kSoftcap, 40);
  CHECK(cap.of_score == 1.0f / 40);
  CHECK(cap.of_result == 40.0f);
  CHECK(cap.fit);
  const FoldedFactors both = fold("exp(score * a / cap) / a", 4, 0.5);
  CHECK(both.of_score == 0.125f);
  CHECK(both.of_result == 2.0f);
  CHECK(both.fit);
  CHECK(fold("a * score + cap", 1, -0.5).of_score == -0.5f);
  CHECK(fold("a * score + cap", 1, -0.5).fit);
  CHECK(fold("a * score + cap", 1, 0).fit);  // as the text, 0 times any score
}

TEST_CASE("score factors: without scalars nothing is folded") {
  for (const char* text : {"50 * tanh(score / 50)", "score + cap", ""}) {
    const FoldedFactors folded = fold(text, kInfinity);
    CHECK((folded.of_score == 1.0f && folded.of_result == 1.0f && folded.fit));
  }
}

TEST_CASE("score factors: a factor that could change more than rounding is left to score_mod") {
  for (const double cap : {0.0, -0.0, -50.0, kInfinity, -kInfinity, std::nan(""), 0x1p-21, 0x1p21,
                           1e-45, 1e-30, 1e30, 3.4e38}) {
    INFO(cap);
    CHECK_FALSE(fold(kSoftcap, cap).fit);
    CHECK_FALSE(fold("cap * exp(score)", cap).fit);
  }
  for (const double a : {kInfinity, std::nan(""), 0x1p-21, -0x1p21, 1e-30, 1e30}) {
    INFO(a);
    CHECK_FALSE(fold("a * score + cap", 1, a).fit);
  }
  // Numbers and scalars count together.
  CHECK(fold("1000 * a * score + cap", 1, 1000).fit);
  CHECK_FALSE(fold("1000 * a * score + cap", 1, 10000).fit);
  CHECK(fold("a * exp(score) / 1000", 1, 0x1p-10).fit);
  CHECK_FALSE(fold("a * exp(score) / 1000", 1, 0x1p-11).fit);
  CHECK(fold("a * exp(score) / 1000", 1, 0x1p25).fit);
}

// generator/snippet/spec_facts.hpp, fixed_max
TEST_CASE("score factors: a cap is no greater than the fixed maximum is right for") {
  CHECK(fold(kSoftcap, 55).fit);
  CHECK_FALSE(fold(kSoftcap, 56).fit);
  CHECK(fold(kSoftcap, 56, 1, f16).fit);               // which has no fixed maximum
  CHECK(fold("2 * cap * tanh(score / cap)", 56).fit);  // 100 at the default: no fixed maximum
  CHECK_FALSE(fold("0.5f * cap * tanh(score / cap)", 112).fit);
  CHECK(fold("0.5f * cap * tanh(score / cap)", 110).fit);
}

}  // namespace
