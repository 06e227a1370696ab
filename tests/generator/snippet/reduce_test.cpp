#include "generator/snippet/reduce.hpp"

#include <string>

#include "generator/snippet/parse.hpp"
#include "generator/snippet/print.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::snippet;

Spec spec() {
  Spec spec{.dtype = DType::bf16, .head_dim = 64};
  spec.buffers["slopes"] = {.dtype = DType::f32, .shape = {NamedDim::num_q_heads}};
  spec.buffers["bias"] = {.dtype = DType::f32, .shape = {FreeDim{}}};
  spec.scalars["cap"] = {.dtype = DType::f32};
  spec.scalars["window"] = {.dtype = DType::i32};
  return spec;
}

SnippetTree tree(const std::string& text) {
  return parse(SnippetKind::score_mod, text, spec());
}
ScoreReduction reduction(const std::string& text) {
  return reduce(tree(text), spec());
}

TEST_CASE("snippet reduction: factors of the score and of the result") {
  const auto of = [](const std::string& text) {
    const ScoreReduction found = reduction(text);
    const auto describe = [](const Factor& factor) {
      std::string all = factor.literal == 1 ? "" : std::to_string(factor.literal).substr(0, 6);
      for (const auto& [name, divides] : factor.scalars) all += (divides ? "/" : "*") + name;
      return all;
    };
    return describe(found.of_score) + " " + describe(found.of_result) +
           (found.is_bounded ? " bounded " : " ") + to_text(found.rest);
  };
  CHECK(of("50 * tanh(score / 50)") == "0.0200 50.000 bounded tanh(score)");
  CHECK(of("cap * tanh(score / cap)") == "/cap *cap bounded tanh(score)");
  CHECK(of("(50.0 * (tanh((score / 50.0))))") == "0.0200 50.000 bounded tanh(score)");
  CHECK(of("const float i = 1 / cap; return tanh(score * i) / i;") ==
        "/cap *cap bounded tanh(score)");
  CHECK(of("0.5f * score + kv_idx") == "0.5000  score + kv_idx");
  CHECK(of("score * 2 * cap") == "2.0000*cap  score");
  CHECK(of("2 * score + 2 * score * score").substr(0, 2) == "  ");
  CHECK(of("2 * score + 3 * score").substr(0, 2) == "  ");
  CHECK(of("2 * score + 2 * score").substr(0, 6) == "2.0000");
  CHECK(of("2 / score").substr(0, 2) == "  ");
  CHECK(of("-2 * score").substr(0, 2) == "  ");
  CHECK(of("1e-9 * score").substr(0, 2) == "  ");
  CHECK(of("kv_idx / -score * 2").substr(0, 2) == "  ");
  CHECK(of("window * score").substr(0, 2) == "  ");
  CHECK(of("5 / 2 * tanh(score)").substr(0, 2) == "  ");
  CHECK(of("if (b) return 0; return 3 * tanh(score);").substr(0, 2) == "  ");
  CHECK(of("float x = score * 2; x = x + score; return x;").substr(0, 2) == "  ");
}

TEST_CASE("snippet reduction: slopes of kv_idx - q_idx") {
  const auto of = [](const std::string& text) {
    const ScoreReduction found = reduction(text);
    return found.slope_sign == 0 ? std::string("none")
                                 : (found.slope_sign > 0 ? "+ " : "- ") + to_text(found.rest);
  };
  CHECK(of("score + slopes[h] * (kv_idx - q_idx)") == "+ slopes[h]");
  CHECK(of("score - slopes[h] * (kv_idx - q_idx)") == "- slopes[h]");
  CHECK(of("score - (q_idx - kv_idx) * slopes[h]") == "+ slopes[h]");
  CHECK(of("-slopes[h] * (q_idx - kv_idx) + score") == "+ slopes[h]");
  CHECK(of("score + (kv_idx - q_idx)") == "+ 1.0");
  CHECK(of("score + (kv_idx - q_idx) / 8.0") == "+ 1.0 / 8.0");
  CHECK(of("score + (kv_idx - q_idx) * slopes[h] / cap") == "+ slopes[h] / cap");
  CHECK(of("score + h / 2 * (kv_idx - q_idx)") == "+ h / 2");
  CHECK(of("score + (kv_idx - q_idx) / 8") == "none");
  CHECK(of("score + (kv_idx - q_idx) * 3 / 2") == "none");
  CHECK(of("score + slopes[h] * (kv_idx - q_idx) * kv_idx") == "none");
  CHECK(of("score + slopes[h] * (kv_idx - q_idx + 1)") == "none");
  CHECK(of("score * score + slopes[h] * (kv_idx - q_idx)") == "none");
  CHECK(of("score + bias[kv_idx] * (kv_idx - q_idx)") == "none");
  CHECK(of("score + slopes[h] * (q_idx - q_idx)") == "none");
  CHECK(of("if (kv_idx > 3) return 0; return score + slopes[h] * (kv_idx - q_idx);") == "none");
  Spec precise = spec();
  precise.precise_math = true;
  CHECK(reduce(tree("score + slopes[h] * (kv_idx - q_idx)"), precise).slope_sign == 0);
  precise.precise_math = false;
  CHECK(reduce(tree("score + slopes[h] * (kv_idx - q_idx)"), precise).slope_sign == 1);
}

TEST_CASE("snippet reduction: one slope for all spellings") {
  const auto form = [](const std::string& text) {
    const ScoreReduction found = reduction(text);
    return std::to_string(found.slope_sign) + " " + to_text(found.rest);
  };
  const std::string alibi = "1 slopes[h]";
  for (const char* text :
       {"(score + (slopes[h] * (kv_idx - q_idx)))", "slopes[h] * (kv_idx - q_idx) + score",
        "score + (kv_idx - q_idx) * slopes[h]", "score + slopes[h] * (float)(kv_idx - q_idx)",
        "return score + slopes(h) * (-q_idx + kv_idx);",
        "int d = kv_idx - q_idx; return score + slopes[h] * d;",
        "const float s = slopes[h], d = kv_idx - q_idx; float x = s * d; x += score; return x;",
        "float x = score; x = x + slopes[int(h)] * float(int(kv_idx - q_idx)); return x;"}) {
    INFO(text);
    CHECK(form(text) == alibi);
  }
}

}  // namespace
