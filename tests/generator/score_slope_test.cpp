#include "generator/score_slope.hpp"

#include <string>

#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

Spec spec_with(const std::string& score_mod, bool precise = false) {
  return {.dtype = bf16, .head_dim = 64, .score_mod = score_mod, .precise_math = precise};
}

ScoreSlope take(const std::string& score_mod) {
  return take_score_slope(spec_with(score_mod));
}

}  // namespace

TEST_CASE("score slope: what stands beside the difference of the indices, and its sign") {
  const ScoreSlope alibi = take("score + slopes[h] * (kv_idx - q_idx)");
  CHECK(alibi.score_mod == "        slopes[h]                   ");
  CHECK(alibi.sign == 1);
  CHECK(take("score - slopes[h] * (q_idx - kv_idx)").sign == 1);
  CHECK(take("score + slopes[h] * (q_idx - kv_idx)").sign == -1);
  CHECK(take("score - slopes[h] * (kv_idx - q_idx)").sign == -1);
  CHECK(take("slope(h) * (kv_idx - q_idx) + score").score_mod ==
        "slope(h)                           ");
  CHECK(take("score + (kv_idx - q_idx) * slope(h, b)").score_mod ==
        "                           slope(h, b)");
  CHECK(take("score + h / 2 * 0.5f * (kv_idx - q_idx)").score_mod ==
        "        h / 2 * 0.5f                   ");
  CHECK(take("score + 0x1F * 1'000.5e-1f * (kv_idx - q_idx)").sign == 1);
  CHECK(take("score + (h + 1) * (kv_idx - q_idx)").score_mod ==
        "        (h + 1)                   ");
}

TEST_CASE("score slope: in a body, places stay as they were") {
  const ScoreSlope slope = take(
      "const float s = exp2(-8.0f * (h + 1) / num_q_heads);\nreturn score + s * (kv_idx - q_idx);");
  CHECK(
      slope.score_mod ==
      "const float s = exp2(-8.0f * (h + 1) / num_q_heads);\nreturn         s                   ;");
  CHECK(slope.sign == 1);
}

TEST_CASE("score slope: left alone where it would mean something else, or may") {
  for (const char* text :
       {"",
        "score",
        "score + kv_idx - q_idx",
        "score + (kv_idx - q_idx)",
        "score * slopes[h] * (kv_idx - q_idx)",
        "2 - score + slopes[h] * (kv_idx - q_idx)",
        "slopes[h] * (kv_idx - q_idx) - score",
        "score + slopes[h] + (kv_idx - q_idx)",
        "score + 1 + slopes[h] * (kv_idx - q_idx)",
        "score + slopes[h] * (kv_idx - q_idx) + 1",
        "score + slopes[h] * (kv_idx - q_idx) * 2",
        "score + (kv_idx - q_idx) * slopes[h] / 2",
        "score + (kv_idx - q_idx) / slopes[h]",
        "score + (kv_idx - q_idx) % 5",
        "score + -slopes[h] * (kv_idx - q_idx)",
        "score + slopes[h] * -(kv_idx - q_idx)",
        "score + slopes[h] * (kv_idx - q_len)",
        "score + slopes[h] * (kv_idx + q_idx)",
        "score + slopes[h] * (q_idx - q_idx)",
        "score + slopes[h] * abs(kv_idx - q_idx)",
        "score + slopes[kv_idx] * (kv_idx - q_idx)",
        "score + (h ? 1 : 2) + slopes[h] * (kv_idx - q_idx)",
        "score + h ? 1 : slopes[h] * (kv_idx - q_idx)",
        "score + h < 2 * (kv_idx - q_idx)",
        "score + slopes[h] * (kv_idx - q_idx) > 3",
        "score - 2u * (q_idx - kv_idx)",
        "score + 2U * (kv_idx - q_idx)",
        "score + 2llu * (kv_idx - q_idx)",
        "score + 0x80000000 * (kv_idx - q_idx)",
        "score + 'a' * (kv_idx - q_idx)",
        "unsigned n = h + 1; return score + n * (kv_idx - q_idx);",
        "score + (unsigned) h * (kv_idx - q_idx)",
        "score + h or slopes[h] * (kv_idx - q_idx)",
        "score + h and slopes[h] * (kv_idx - q_idx)",
        "score + h bitor 2 * (kv_idx - q_idx)",
        "score + h bitand 2 * (kv_idx - q_idx)",
        "score + h xor 2 * (kv_idx - q_idx)",
        "score + h not_eq 2 * (kv_idx - q_idx)",
        "score + not h * (kv_idx - q_idx)",
        "score + compl h * (kv_idx - q_idx)",
        "if (h) return score + slopes[h] * (kv_idx - q_idx); return 0;",
        "float q_idx = 2; return score + slopes[h] * (kv_idx - q_idx);",
        "float s = score; return s + slopes[h] * (kv_idx - q_idx);",
        "auto f = [](int score) { return 1; }; return score + f(1) * (kv_idx - q_idx);"}) {
    CAPTURE(text);
    CHECK(take(text).score_mod == text);
    CHECK(take(text).sign == 0);
  }
}

TEST_CASE("score slope: beside a factor of the score, and not where math is to be precise") {
  CHECK(has_score_slope(spec_with("score * 0.5 + slopes[h] * (kv_idx - q_idx)")));
  CHECK(has_score_slope(spec_with("score + 3 * (kv_idx - q_idx)")));
  CHECK_FALSE(has_score_slope(spec_with("score + 3 * (kv_idx - q_idx)", true)));
  CHECK_FALSE(has_score_slope(spec_with("")));
  CHECK_FALSE(has_score_slope(spec_with("tanh(score)")));
}
