// What derivatives are written as. Their values are compared with differences in
// tests/fuzz/derivative_test.cpp.

#include "generator/snippet/derivative.hpp"

#include <string>

#include "generator/snippet/print.hpp"
#include "generator/snippet/spec_facts.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

std::string derivative_text(const std::string& score_mod) {
  const Spec spec = {.dtype = bf16,
                     .head_dim = 64,
                     .score_mod = score_mod,
                     .buffers = {{"x", {.dtype = f32, .shape = {100}}}}};
  const SpecFacts facts(spec);
  const auto derivative = snippet::differentiate(facts.score_mod->tree, {});
  REQUIRE(derivative);
  return snippet::to_text(snippet::SnippetTree{.statements = derivative->statements});
}

}  // namespace

TEST_CASE("derivatives: numbers stay apart where their product leaves float32's middle range") {
  CHECK(derivative_text("tanh(score) / 3e38") ==
        "float tw_x0 = tanh(score);\n"
        "float tw_x1 = 1.0 - tw_x0 * tw_x0;\n"
        "float tw_x2 = tw_x0 / 3e+38;\n"
        "float tw_x3 = (tw_x1 == 0.0) ? 0.0 : tw_x1 / 3e+38;\n"
        "tw_by[0] = tw_x3;\n"
        "return tw_x2;");
  CHECK(derivative_text("1e12 * (1e12 * tanh(score))") ==
        "float tw_x0 = tanh(score);\n"
        "float tw_x1 = 1.0 - tw_x0 * tw_x0;\n"
        "float tw_x2 = 1000000000000.0 * tw_x0;\n"
        "float tw_x3 = 1000000000000.0 * tw_x2;\n"
        "float tw_x4 = 1000000000000.0 * tw_x1 * 1000000000000.0;\n"
        "tw_by[0] = tw_x4;\n"
        "return tw_x3;");
}

TEST_CASE("derivatives: numbers are multiplied before the kernel runs, and cancel") {
  CHECK(derivative_text("20.0 * tanh(score / 20.0)") ==
        "float tw_x0 = score / 20.0;\n"
        "float tw_x1 = tanh(tw_x0);\n"
        "float tw_x2 = 1.0 - tw_x1 * tw_x1;\n"
        "float tw_x3 = 20.0 * tw_x1;\n"
        "tw_by[0] = tw_x2;\n"
        "return tw_x3;");
  CHECK(derivative_text("3.0 * exp(0.5 * score) * 4.0") ==
        "float tw_x0 = 0.5 * score;\n"
        "float tw_x1 = exp(tw_x0);\n"
        "float tw_x2 = 3.0 * tw_x1;\n"
        "float tw_x3 = tw_x2 * 4.0;\n"
        "tw_by[0] = 6.0 * tw_x1;\n"
        "return tw_x3;");
  CHECK(derivative_text("x[0] * (score / 4.0)") ==
        "float tw_x0 = x[0];\n"
        "float tw_x1 = score / 4.0;\n"
        "float tw_x2 = tw_x0 * tw_x1;\n"
        "tw_by[0] = 0.25 * tw_x0;\n"
        "return tw_x2;");
}
