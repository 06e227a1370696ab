#include "generator/score_factors.hpp"

#include <string>

#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

ScoreFactors take(const std::string& score_mod, bool precise = false) {
  return take_score_factors(
      {.dtype = bf16, .head_dim = 64, .score_mod = score_mod, .precise_math = precise});
}

bool leaves_alone(const std::string& score_mod) {
  const ScoreFactors factors = take(score_mod);
  return factors.score_mod == score_mod && factors.of_score == 1 && factors.of_result == 1;
}

}  // namespace

TEST_CASE("score factors: a number beside the score and one beside the result") {
  const ScoreFactors factors = take("50 * tanh(score / 20)");
  CHECK(factors.score_mod == "     tanh(score     )");
  CHECK(factors.of_score == 1.0 / 20);
  CHECK(factors.of_result == 50);
  CHECK(take("tanhf(0.25f * score) / 4").of_score == 0.25);
  CHECK(take("tanhf(0.25f * score) / 4").of_result == 0.25);
}

TEST_CASE("score factors: in a body, places stay as they were") {
  const ScoreFactors factors = take("float x = score * 0.5;\nreturn 8 * tanh(x);");
  CHECK(factors.score_mod == "float x = score      ;\nreturn     tanh(x);");
  CHECK(factors.of_score == 0.5);
  CHECK(factors.of_result == 8);
}

TEST_CASE("score factors: the score's alone where the result is something else") {
  for (const char* text : {"score / 2 + 1",
                           "1 - score / 2",
                           "-score / 2",
                           "q_idx > 3 ? score / 2 : -INFINITY",
                           "if (h) return score / 2; return 0;",
                           "return 3 * tanh(1) + score / 2;",
                           "score / 2 * kv_idx",
                           "3 * (score / 2)",
                           "kv_idx * tanh(score / 2)",
                           "-3 * tanh(score / 2)",
                           "3 * tanh(score / 2) * 2",
                           "3 * tanh(score / 2) - 1",
                           "h - score / 2",
                           "2.5 - score / 2",
                           "slopes[h] - score / 2",
                           "exp(h) + score / 2",
                           "(h + 1) - score / 2",
                           "h ? -score / 2 : 0",
                           "h > -score / 2",
                           "kv_idx - (-score / 2)"}) {
    CAPTURE(text);
    CHECK(take(text).of_score == 0.5);
    CHECK(take(text).of_result == 1);
  }
}

TEST_CASE("score factors: left alone where it would mean something else, or may") {
  for (const char* text : {"",
                           "score",
                           "score + 2",
                           "2 / score",
                           "kv_idx / score * 2",
                           "kv_idx * score * 2",
                           "score * kv_idx",
                           "score * score * 2",
                           "score * -2",
                           "score / 0",
                           "score * 1e30",
                           "score * 1e-30",
                           "score * 010",
                           "score * 0x10",
                           "(score) * 2",
                           "2 * (score)",
                           "kv_idx % 2 * score",
                           "kv_idx / 2 * score",
                           "exp(score) * kv_idx",
                           "select(h > 1, score, 0)",
                           "slopes[h] / -score * 2",
                           "1 / -score * 2",
                           "1 / +score * 2",
                           "0.1 / -2 * score",
                           "kv_idx * -score * 2",
                           "kv_idx % -2 * score",
                           "2 - -score * 2",
                           "1 - -2 * score",
                           "!-score * 2",
                           "~-2 * score",
                           "(int) -score * 2",
                           "(int) -2 * score",
                           "(decltype(h + 1)) -score * 2",
                           "using real = float; return (real) -score * 2;",
                           "float s = score; s *= 2; return s;"}) {
    CAPTURE(text);
    CHECK(leaves_alone(text));
  }
  CHECK(take("(kv_idx - q_idx) / 2").of_result == 1);  // of whole numbers
  CHECK(take("auto f = [](float x) { return x; }; return 2 * tanh(f(score));").of_result == 1);
  CHECK(take("50 * tanh(score / 20)", true).score_mod == "50 * tanh(score / 20)");
}

TEST_CASE("score factors: a tanh, sine or cosine as the whole result has bounds") {
  for (const char* text : {"tanh(score)", "50 * tanh(score / 50)", "tanhf(score + 3 * h) * 4",
                           "const float x = score;\nreturn cos(x);", "sin(score) / 2"}) {
    CAPTURE(text);
    CHECK(take(text).is_bounded);
  }
  for (const char* text : {"", "score", "score + tanh(score)", "tanh(score) + 1", "-tanh(score)",
                           "h * tanh(score)", "50 * exp(score)", "h ? tanh(score) : score",
                           "tanh(score) * tanh(score)", "2 * tanh(score) * h", "score * tanh(1)"}) {
    CAPTURE(text);
    CHECK_FALSE(take(text).is_bounded);
  }
  CHECK_FALSE(take("50 * tanh(score / 50)", true).is_bounded);
}
