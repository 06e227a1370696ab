#include "generator/snippet/derivative.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "fuzz/interpreter.hpp"
#include "fuzz/random_snippet.hpp"
#include "generator/snippet/parse.hpp"
#include "runtime/api/tensor.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/test_seed.hpp"
#include "verify/random_inputs.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify;
using namespace tilewright::verify::fuzz;
using snippet::Derivative;
using snippet::DerivativeWish;
using snippet::differentiate;

// A call of one row, with an f32 scalar `cap` and f32 buffers `bias` (one number) and `table`.
struct Call {
  Call() {
    spec.buffers["bias"] = {.dtype = f32};
    spec.buffers["table"] = {.dtype = f32, .shape = {4}};
    spec.scalars["cap"] = {.dtype = f32};
    inputs.buffers.emplace("bias", bias);
    inputs.buffers.emplace("table", table);
    set("cap", 1.5F);
    set("bias", 0.75F);
    for (int i = 0; i < 4; ++i)
      static_cast<float*>(table.data())[i] = 0.5F + 0.25F * static_cast<float>(i);
  }

  void set(const std::string& name, float value) {
    if (name == "cap") inputs.scalars["cap"] = value;
    if (name == "bias") *static_cast<float*>(bias.data()) = value;
  }

  double value(const SnippetTree& tree, double score) const {
    const Shape shape{.q_len = 1, .kv_len = 1};
    const CallValues values(spec, shape, inputs);
    double modified = 0;
    Interpreter<double>(tree, values).modify({}, &score, &modified);
    return modified;
  }

  Tensor bias = Tensor::zeros(f32, {});
  Tensor table = Tensor::zeros(f32, {4});
  Spec spec{.dtype = f32, .head_dim = 16};
  SnippetInputs inputs;
};

SnippetTree parsed(const Call& call, const std::string& text) {
  return snippet::parse(SnippetKind::score_mod, text, call.spec);
}

double by_score(const Call& call, const std::string& text, double score) {
  const std::optional<Derivative> derivative = differentiate(parsed(call, text), {});
  REQUIRE(derivative);
  return call.value(derivative->returning(0), score);
}

bool are_near(double a, double b) {
  return std::fabs(a - b) <= 1e-6 * (1 + std::fabs(b));
}

TEST_CASE("derivative: every operator and function agrees with central differences") {
  Call call;
  for (const char* text :
       {"score * score - 3 * score + kv_idx",
        "-score / (2 + score * score)",
        "cap / score",
        "min(score, 0.25f) + max(2 * score, 1)",
        "fmaxf(score, bias) * fmin(score, cap)",
        "abs(score) + sign(score) + floor(score) * score + ceil(score)",
        "clamp(score, -0.5, bias) + clamp(3, score, 2 * score)",
        "floor_mod(score, 0.4f)",
        "floor_mod(7.0f, score + 3)",
        "floor_div(score, 0.4f) * score",
        "tanh(score)",
        "cap * tanh(score / cap)",
        "exp(score) + exp2(score) + expm1(score)",
        "log(score + 2) + log2(score + 2) + log1p(score + 1)",
        "erf(score) + erfc(2 * score)",
        "sqrt(score + 2) + rsqrt(score + 2)",
        "sin(score) + cos(score) + tan(score)",
        "pow(score + 2, 3) + pow(2.0f, score) + pow(score + 2, score)",
        "select(score > 0, score, score * score)",
        "score > 0 ? exp(score) : sin(score)",
        "float t = score; if (score > 0) { t = t * t; } else { t += cap; } return t * bias;",
        "float t = 1; for (int i = 0; i < 3; ++i) { t = t * score + i; } return t;",
        "int n = score > 0.1f ? 2 : 3; return score * n + (score > 0.1f) + table[n & 3];",
        "if (score > 0) { score = score * 2; } return score * score;",
        "float a = score; float c = a * a; c = c + a; return c * float(kv_idx + 2);"}) {
    INFO(text);
    const SnippetTree tree = parsed(call, text);
    REQUIRE(snippet::opaque(tree) == nullptr);
    for (const double score : {-1.03, -0.61, 0.17, 0.83, 1.37}) {
      INFO(score);
      const double h = 1e-5;
      const double wanted = (call.value(tree, score + h) - call.value(tree, score - h)) / (2 * h);
      CHECK(are_near(by_score(call, text, score), wanted));
    }
  }
}

TEST_CASE("derivative: by scalars and by each read of a buffer") {
  Call call;
  const SnippetTree tree =
      parsed(call,
             "float t = score * cap + bias; if (t > 1) { t = t * bias; } "
             "return tanh(t / cap) + table[kv_idx] * table[kv_idx + 1] * score;");
  const std::optional<Derivative> derivative =
      differentiate(tree, {.by_score = true, .names = {"cap", "bias", "table"}});
  REQUIRE(derivative);
  REQUIRE(derivative->slots.size() == 6);  // bias is read twice, and table too
  const double score = 0.7;
  double by_bias = 0;
  for (std::size_t slot = 0; slot < derivative->slots.size(); ++slot) {
    const snippet::DerivativeSlot& wanted = derivative->slots[slot];
    const double by = call.value(derivative->returning(slot), score);
    if (wanted.name == "bias") by_bias += by;
    if (wanted.name == "table") {
      const bool is_first = wanted.indices[0].is_variable("kv_idx");
      CHECK(are_near(by, score * (is_first ? 0.75 : 0.5)));
    }
    if (wanted.name != "cap") continue;
    Call less, more;
    less.set("cap", 1.5F - 0x1p-9F);
    more.set("cap", 1.5F + 0x1p-9F);
    const double difference = (more.value(tree, score) - less.value(tree, score)) * 0x1p8;
    CHECK(std::fabs(by - difference) < 1e-4);
  }
  Call less, more;
  less.set("bias", 0.75F - 0x1p-9F);
  more.set("bias", 0.75F + 0x1p-9F);
  CHECK(std::fabs(by_bias - (more.value(tree, score) - less.value(tree, score)) * 0x1p8) < 1e-4);
}

TEST_CASE("derivative: ties share, bounds pass, and what is not taken is not asked") {
  const Call call;
  CHECK(by_score(call, "max(score, 0)", 0) == 0.5);
  CHECK(by_score(call, "min(2.0f, score)", 2) == 0.5);
  CHECK(by_score(call, "max(score, score * score)", 1) == 1.5);
  CHECK(by_score(call, "clamp(score, -1, 1)", 1) == 1);
  CHECK(by_score(call, "clamp(score, -1, 1)", -1) == 1);
  CHECK(by_score(call, "clamp(score, -1, 1)", 1.5) == 0);
  CHECK(by_score(call, "clamp(2.0f, 0, score)", 1) == 1);
  CHECK(by_score(call, "clamp(0.0f, score, 2 * score)", 1) == 1);
  CHECK(by_score(call, "clamp(0.0f, score + 3, 2 * score)", 1) == 2);  // the bounds are crossed
  CHECK(by_score(call, "abs(score)", 0) == 0);
  CHECK(by_score(call, "score > 0 ? log(score) : 0", -1) == 0);
  CHECK(by_score(call, "select(score > 0, log(score), 2 * score)", -1) == 2);
  CHECK(by_score(call, "sqrt(max(score, 0))", -1) == 0);  // and not 0 * infinity
  CHECK(by_score(call, "float t = score; if (score > 0) { t = sqrt(score - 1); } return t;", 0) ==
        1);
  CHECK(by_score(call, "pow(score, 0)", 0) == 0);
  CHECK(by_score(call, "score * 0 - INFINITY", 1) == 0);
  CHECK(std::isinf(by_score(call, "sqrt(score)", 0)));
  CHECK(std::isinf(by_score(call, "log(score)", 0)));
}

TEST_CASE("derivative: what is the same everywhere is known beforehand") {
  const Call call;
  const auto constant = [&](const std::string& text) {
    return differentiate(parsed(call, text), {})->constants[0];
  };
  CHECK(constant("score + bias * (kv_idx - q_idx)") == 1.0);
  CHECK(constant("float t = score; return t - cap;") == 1.0);
  CHECK(constant("bias") == 0.0);
  CHECK(constant("float(int(score))") == 0.0);
  CHECK(constant("2 * score") == 2.0);
  CHECK(!constant("if (kv_idx > 3) { return score; } return bias;"));
  CHECK(!constant("tanh(score)"));
}

TEST_CASE("derivative: what the tree does not say is left to dual numbers") {
  const Call call;
  CHECK(!differentiate(parsed(call, "float a[2] = {score, 1}; return a[0];"), {}));
  CHECK(!differentiate(parsed(call, "auto f = [=](float x) { return x * 2; }; return f(score);"),
                       {}));
  const std::string loop =
      "float t = score; for (int i = 0; i < 4; ++i) { t += table[i]; } return t;";
  CHECK(differentiate(parsed(call, loop), {}));
  CHECK(!differentiate(parsed(call, loop), {.names = {"table"}}));
}

// Near a kink the differences from both sides, or of two widths, differ.
TEST_CASE("derivative: random trees agree with central differences") {
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  Random random(seed, "derivative");
  int compared = 0, skipped = 0, understood = 0;
  for (int i = 0; i < 10000; ++i) {
    Spec spec{.dtype = f32, .head_dim = 16};
    SnippetWish wish;
    for (const Factor factor : {Factor::functions, Factor::choice, Factor::local}) {
      bits(wish.features, factor) = static_cast<std::uint16_t>(random.integer(0, 63));
    }
    wish.is_body = random.integer(0, 1) == 0;
    SnippetTree tree = SnippetMaker(spec, random).score_mod(wish);
    const std::optional<Derivative> derivative = differentiate(tree, {});
    if (!derivative) continue;
    ++understood;
    const Shape shape{.num_q_heads = 2, .q_len = 2, .kv_len = 3};
    const Inputs inputs = random_snippet_inputs(spec, shape, seed + static_cast<std::uint64_t>(i));
    const CallValues values(spec, shape, inputs.problem().snippet);
    const Interpreter<double> of_value(tree, values), of_slope(derivative->returning(0), values);
    const std::vector<double> scores = {-1.37, 0.21, 1.9};
    const auto at = [&](const Interpreter<double>& interpreter, double shift) {
      std::vector<double> shifted = scores, result(3);
      for (double& score : shifted) score += shift;
      interpreter.modify({.b = 0, .h = 1, .row = 1}, shifted.data(), result.data());
      return result;
    };
    const double h = 1e-5;
    const std::vector<double> low = at(of_value, -h), middle = at(of_value, 0),
                              high = at(of_value, h), slope = at(of_slope, 0);
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const double left = (middle[j] - low[j]) / h, right = (high[j] - middle[j]) / h;
      const double wanted = (left + right) / 2;
      if (!(std::fabs(left - right) < 1e-3 * (1 + std::fabs(wanted)))) {
        ++skipped;
        continue;
      }
      ++compared;
      INFO(to_text(tree));
      INFO("score " << scores[j] << ": " << slope[j] << ", differences " << wanted);
      REQUIRE(std::fabs(slope[j] - wanted) <= 1e-5 * (1 + std::fabs(wanted)));
    }
  }
  CHECK(understood > 6000);
  CHECK(compared > 8 * skipped);
}

}  // namespace
