// What gradients of buffers and scalars are sums of.

#include "generator/snippet/gradient_terms.hpp"

#include <string>
#include <utility>
#include <vector>

#include "generator/snippet/derivative.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

Spec spec_of(std::string score_mod) {
  return {.dtype = bf16,
          .head_dim = 64,
          .score_mod = std::move(score_mod),
          .buffers = {{"x", {.dtype = f32, .shape = {100}}},
                      {"y", {.dtype = f32, .shape = {100}}},
                      {"doc", {.dtype = i32, .shape = {NamedDim::q_len}}}},
          .outputs = {.lse = true},
          .gradients = {"q", "x"}};
}

GradientTerms terms_of(const std::string& score_mod) {
  const Spec spec = spec_of(score_mod);
  const auto terms = gradient_terms(spec);
  REQUIRE(terms);
  return *terms;
}

// By the read of x.
snippet::Derivative derivative_of(const std::string& score_mod) {
  const Spec spec = spec_of(score_mod);
  const SpecFacts facts(spec);
  auto by_x = snippet::differentiate(facts.score_mod->tree, {.by_score = false, .names = {"x"}});
  REQUIRE(by_x);
  return std::move(*by_x);
}

bool has_bounded_slope(const std::string& score_mod) {
  const Spec spec = spec_of(score_mod);
  const SpecFacts facts(spec);
  const auto by_score = snippet::differentiate(facts.score_mod->tree, {});
  REQUIRE(by_score);
  return is_bounded(*by_score);
}

bool is_finite_by_x(const std::string& score_mod) {
  return is_finite(derivative_of(score_mod), 0);
}

}  // namespace

TEST_CASE("gradient terms: the pattern of an index") {
  const auto pattern_of = [](const std::string& index) {
    const GradientTerms terms = terms_of("score + x[" + index + "]");
    REQUIRE(terms.patterns.size() == 1);
    return terms.patterns[0];
  };
  CHECK(pattern_of("h") == GradientPattern::head);
  CHECK(pattern_of("doc[q_idx]") == GradientPattern::row);
  CHECK(pattern_of("kv_idx / 2") == GradientPattern::column);
  CHECK(pattern_of("clamp(q_idx - kv_idx, -5, 5) + 5") == GradientPattern::difference);
  CHECK(pattern_of("q_idx - 2 * kv_idx") == GradientPattern::element);
  CHECK(pattern_of("int(score)") == GradientPattern::element);
}

TEST_CASE("gradient terms: whether each difference has a cell of its own") {
  const auto has_own_cells = [](const std::string& index) {
    return has_cell_for_each_difference(derivative_of("score + x[" + index + "]").slots[0]);
  };
  CHECK(has_own_cells("kv_idx - q_idx + q_len - 1"));
  CHECK(has_own_cells("-(q_idx - kv_idx)"));
  CHECK_FALSE(has_own_cells("clamp(q_idx - kv_idx, -5, 5) + 5"));
  CHECK_FALSE(has_own_cells("(q_idx - kv_idx) / 2"));
  CHECK_FALSE(has_own_cells("(q_idx - kv_idx) - (q_idx - kv_idx)"));
}

TEST_CASE("gradient terms: whether score_mod adds to the score") {
  CHECK(terms_of("score + x[h] * (kv_idx - q_idx)").adds_to_score);
  CHECK(terms_of("float a = x[h]; return score + (q_idx > 3 ? a : 0.0);").adds_to_score);
  CHECK_FALSE(terms_of("2.0 * score + x[h]").adds_to_score);
  CHECK_FALSE(terms_of("score * x[h]").adds_to_score);
  CHECK_FALSE(terms_of("score + (score > 0 ? x[h] : 0.0)").adds_to_score);
  CHECK_FALSE(terms_of("if (score > 0) return score + x[h]; return score;").adds_to_score);
  CHECK_FALSE(terms_of("float s = score * 2.0; return score + x[h] * floor(s);").adds_to_score);
}

TEST_CASE("gradient terms: whether a factor is finite") {
  CHECK(is_finite_by_x("score + x[h]"));
  CHECK(is_finite_by_x("score + 0.5 * x[h] * (kv_idx - q_idx)"));
  CHECK(is_finite_by_x("float d = abs(kv_idx - q_idx); return score - x[h] * d;"));
  CHECK_FALSE(is_finite_by_x("score + x[h] / (kv_idx - q_idx)"));
  CHECK_FALSE(is_finite_by_x("score + x[h] * y[h]"));
  CHECK_FALSE(is_finite_by_x("score + x[h] * sqrt(float(kv_idx - q_idx))"));
  CHECK_FALSE(is_finite_by_x("score + x[h] * INFINITY"));
  CHECK_FALSE(is_finite_by_x("score + x[h] * NAN"));
}

TEST_CASE("gradient terms: constants and functions that forward knows have derivatives") {
  const auto is_known = [](const std::string& score_mod) {
    INFO(score_mod);
    return !unknown_derivative(spec_of(score_mod));
  };
  for (const char* const constant :
       {"NAN", "-NAN", "INFINITY", "true", "0x1p-3f", "1'000", "2ll"}) {
    CHECK(is_known(std::string("q_idx == 5 ? ") + constant + " : score + x[h]"));
  }
  for (const snippet::Operation& operation : snippet::operations()) {
    for (const std::string& name : snippet::function_names(operation)) {
      std::string call = name + "(score + x[h]";
      for (std::size_t i = 1; i < operation.operands; ++i) call += ", score";
      CHECK(is_known(call + ")"));
    }
  }
}

TEST_CASE("gradient terms: whether a branch decides about a factor") {
  const auto is_branched_by_x = [](const std::string& score_mod) {
    return is_branched(derivative_of(score_mod), 0);
  };
  CHECK(is_branched_by_x("select(q_idx > 3, score + x[h], score)"));
  CHECK(is_branched_by_x("float a = x[h]; return score + (q_idx > 3 ? a : 0.0);"));
  CHECK(is_branched_by_x("if (q_idx > 3) return score + x[h]; return score;"));
  CHECK_FALSE(is_branched_by_x("score + x[h] * (kv_idx - q_idx)"));
  CHECK_FALSE(is_branched_by_x("score + x[clamp(kv_idx - q_idx, -20, 20) + 20]"));
}

TEST_CASE("gradient terms: of a snippet whose derivative is unknown") {
  const Spec opaque = spec_of("unsigned u = 3; return score * u + x[h];");
  CHECK_FALSE(gradient_terms(opaque));
  const auto unknown = unknown_derivative(opaque);
  REQUIRE(unknown);
  CHECK(unknown->begin == 0);
  CHECK_FALSE(unknown_derivative(spec_of("score + x[h]")));
}

TEST_CASE("gradient terms: a derivative by the score that is finite whatever the score is") {
  CHECK(has_bounded_slope("score + x[h]"));
  CHECK(has_bounded_slope("20 * tanh(score / 20) + x[h]"));
  CHECK(has_bounded_slope("float t = tanh(0.1 * score); return 3 * t - 0.5 * t * t;"));
  CHECK_FALSE(has_bounded_slope("score * x[h]"));
  CHECK_FALSE(has_bounded_slope("score * score"));
  CHECK_FALSE(has_bounded_slope("exp(score)"));
  CHECK_FALSE(has_bounded_slope("1e30 * score * 1e30"));
  CHECK_FALSE(has_bounded_slope("INFINITY * tanh(score)"));
  CHECK_FALSE(has_bounded_slope("x[h] > 0 ? tanh(score) : score"));
  CHECK_FALSE(has_bounded_slope("float t = 1; if (x[h] > 0) { t = 2; } return t * score;"));
}
