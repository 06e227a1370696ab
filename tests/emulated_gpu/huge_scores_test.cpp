// Scores near the limits of their type, as padding masks have them, through each fast path of the
// kernels for GPUs. tests/verify/huge_scores_test.cpp runs the same on the CPU.

#include "tests/support/huge_scores.hpp"

#include "tests/support/catch.hpp"

using namespace tilewright;
using test::findings;

namespace {

const std::vector<std::string> kNone;

// template_name: "hopper" or "portable".
std::vector<std::string> findings_of(test::HugeScores huge, const std::string& template_name) {
  huge.spec.tactic = TacticSpec{template_name, {}};
  return findings(huge, Device::parse("cuda"));
}

}  // namespace

TEST_CASE("emulated GPU: huge scores on tensor cores") {
  const std::string name = GENERATE(as<std::string>(), "hopper", "portable");
  CAPTURE(name);
  CHECK(findings_of(test::padded_scores(bf16, f32), name) == kNone);
  CHECK(findings_of(test::padded_scores(f16, f16), name) == kNone);
}

TEST_CASE("emulated GPU: huge scores in float32") {
  CHECK(findings_of(test::padded_scores(f32, f32), "portable") == kNone);
}

TEST_CASE("emulated GPU: huge scores under a mask, in tiles that span two of its rows too") {
  test::HugeScores huge = test::padded_scores(bf16, bf16, "q_idx >= kv_idx - 150");
  CHECK(findings_of(huge, "portable") == kNone);
  CHECK(findings_of(huge, "hopper") == kNone);
  huge.spec.tactic = TacticSpec{"hopper", {{"q_tile", 192}}};
  CHECK(findings(huge, Device::parse("cuda")) == kNone);
}

TEST_CASE("emulated GPU: slopes of every size") {
  CHECK(findings_of(test::steep_slopes(bf16), "hopper") == kNone);
  // Under a causal mask the greatest score is the query's own key's. Its q.k is rounded with the
  // terms of the slope that the product starts from, so lse is off by as much. Its weight is then
  // 2^r with |r| <= 1/8 in place of 1, which P rounds by up to 2^-12: a row of one weight, which
  // naive has exactly, shows that in its RMS error. The greatest error stays in its bound.
  for (const std::string& text :
       findings_of(test::steep_slopes(f16, "q_idx >= kv_idx"), "hopper")) {
    CHECK_THAT(text, Catch::Matchers::ContainsSubstring(": lse is off by") ||
                         Catch::Matchers::ContainsSubstring(": the RMS error"));
  }
  // docs/math.md: a float times a difference of indices is exact up to 2^119.
  CHECK(findings_of(test::steep_slopes(bf16, "", 0x1p119), "portable") == kNone);
}

TEST_CASE("emulated GPU: large results of functions whose factor is left to the exponent") {
  CHECK(findings_of(test::folded_factors(bf16), "hopper") == kNone);
}

TEST_CASE("emulated GPU: a cap of any size, whichever kernel serves it") {
  CHECK(findings_of(test::softcaps(bf16), "hopper") == kNone);
  CHECK(findings_of(test::softcaps(f16, "q_idx >= kv_idx - 150"), "hopper") == kNone);
}

TEST_CASE("emulated GPU: the weight of an only key is 1, with a cap too") {
  const Spec spec = test::softcaps(bf16).spec;
  verify::CheckOptions options;
  options.attention.device = Device::parse("cuda");
  options.check_undefined = false;
  const verify::Checker checker(spec, options);
  const Shape one{.batch = 1, .num_q_heads = 2, .num_kv_heads = 2, .q_len = 3, .kv_len = 1};
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    CAPTURE(seed);
    CHECK(checker.check(verify::random_inputs(spec, one, seed).problem()).reasons() == kNone);
  }
}

TEST_CASE("emulated GPU: the weight of an only key is 1, whatever its score") {
  const DType dtype = GENERATE(bf16, f16);
  const char* const size = GENERATE("701.3f", "5601.7f", "44801.9f", "-65500.3f", "1300001.3f");
  const std::string name = GENERATE(as<std::string>(), "hopper", "portable");
  CAPTURE(dtype, size, name);
  Spec spec{.dtype = dtype, .head_dim = 64};
  spec.score_mod = std::string("score + (kv_idx == q_idx ? ") + size + " : 0.5f)";
  spec.tactic = TacticSpec{name, {}};
  verify::CheckOptions options;
  options.attention.device = Device::parse("cuda");
  options.check_undefined = false;
  const verify::Checker checker(spec, options);
  const Shape one{.batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 1, .kv_len = 1};
  for (const std::uint64_t seed : {1U, 2U}) {
    CHECK(checker.check(verify::random_inputs(spec, one, seed).problem()).reasons() == kNone);
  }
}
