#include <cmath>
#include <string>
#include <vector>

#include "generator/snippet/snippet.hpp"
#include "tests/generator/evaluate.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;

namespace {

Spec score_spec(std::string text) {
  Spec spec{.dtype = f32, .head_dim = 16};
  spec.score_mod = std::move(text);
  return spec;
}

Spec mask_spec(std::string text) {
  Spec spec{.dtype = f32, .head_dim = 16};
  spec.mask_mod = std::move(text);
  return spec;
}

}  // namespace

TEST_CASE("interpretations: float and double differ in nothing but precision") {
  const Spec spec =
      score_spec("double third = 1.0 / 3; float x = third * kv_idx; return score + x;");
  const Row in_float = evaluate<float>(spec, "evaluate_float", arguments_of(4, 5), 3, 1);
  const Row in_double = evaluate<double>(spec, "evaluate_double", arguments_of(4, 5), 3, 1);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(in_double.modified[i] == 1 + 1.0 / 3 * static_cast<double>(i));
    CHECK(in_float.modified[i] == 1.0f + 1.0f / 3 * static_cast<float>(i));
    CHECK(in_double.keep[i] == 1);
  }
}

TEST_CASE("interpretations: the double interpretation has every function in double precision") {
  const Spec spec = score_spec(
      "return exp(score) + exp2f(score) + log(score) + log2(score) + tanh(score) + sinf(score) + "
      "cos(score) + tan(score) + pow(score, 1.5) + sqrt(score) + rsqrt(score) + fabs(-score) + "
      "floor(score) + ceil(score) + fmin(score, 1) + max(score, 3) + clamp(score, 0, 1) + "
      "abs(-2) + select(true, score, 0.0);");
  const double x = 1.7;
  const double expected = std::exp(x) + std::exp2(x) + std::log(x) + std::log2(x) + std::tanh(x) +
                          std::sin(x) + std::cos(x) + std::tan(x) + std::pow(x, 1.5) +
                          std::sqrt(x) + 1 / std::sqrt(x) + x + 1 + 2 + 1 + 3 + 1 + 2 + x;
  CHECK_THAT(evaluate<double>(spec, "evaluate_double", arguments_of(1, 1), 0, x).modified[0],
             Catch::Matchers::WithinAbs(expected, 1e-13));
  CHECK_THAT(evaluate<float>(spec, "evaluate_float", arguments_of(1, 1), 0, x).modified[0],
             Catch::Matchers::WithinAbs(expected, 2e-5));
}

TEST_CASE("interpretations: every function takes ints, floats and both, in every interpretation") {
  std::string snippet = "double sum = 0;\n";
  for (const std::string& name : snippet_functions()) {
    const bool binary = name.find("min") != std::string::npos ||
                        name.find("max") != std::string::npos || name.starts_with("pow") ||
                        name.starts_with("floor_");
    if (name == "clamp" || name == "select") {
      snippet += "sum += " + name + "(kv_idx, 1, 2.5) + " + name + "(kv_idx, 0.5f, 3);\n";
    } else if (binary) {
      snippet += "sum += " + name + "(score, 2) + " + name + "(kv_idx, 1.5) + " + name +
                 "(kv_idx, 2) + " + name + "(2.0f, 1.0);\n";
    } else {
      snippet += "sum += " + name + "(score) + " + name + "(kv_idx) + " + name + "(0.5f);\n";
    }
  }
  snippet += "return score < INFINITY ? sum : NAN;";
  const Spec spec = score_spec(snippet);
  const double in_double =
      evaluate<double>(spec, "evaluate_double", arguments_of(1, 3), 0, 0.7).modified[2];
  const double in_float =
      evaluate<float>(spec, "evaluate_float", arguments_of(1, 3), 0, 0.7).modified[2];
  const double checked =
      evaluate<float>(spec, "evaluate_checked", arguments_of(1, 3), 0, 0.7).modified[2];
  CHECK(std::isfinite(in_double));
  CHECK_THAT(in_float, Catch::Matchers::WithinRel(in_double, 1e-5));
  CHECK_THAT(checked, Catch::Matchers::WithinRel(in_double, 1e-5));
  CHECK_NOTHROW(load_kernel(spec, "forward"));
}

TEST_CASE("interpretations: indices, lengths and offsets are those of the call") {
  abi::SnippetArguments arguments = arguments_of(4, 6);
  arguments.q_offset = 10;
  arguments.kv_offset = 20;
  const Row row = evaluate<double>(score_spec("q_idx * 10000 + kv_idx * 100 + q_len * 10 + kv_len"),
                                   "evaluate_double", arguments, 2, 0);
  CHECK(row.modified[3] == 12 * 10000 + 23 * 100 + 46);
  CHECK(evaluate<double>(mask_spec("kv_idx > 22"), "evaluate_double", arguments, 2, 0).keep ==
        std::vector<int>{0, 0, 0, 1, 1, 1});
}

TEST_CASE("checked interpretation: a sound snippet gives results and no finding") {
  const Spec spec = score_spec("int d = abs(q_idx - kv_idx); return score - 0.5 * (d % 3) / 7;");
  CHECK(check(spec, arguments_of(4, 50)).empty());
  const Row row = evaluate<float>(spec, "evaluate_checked", arguments_of(4, 50), 3, 1);
  CHECK(row.modified[4] == 1 - 0.5f * 1 / 7);
}

TEST_CASE("checked interpretation: undefined behaviour is found at its line of the snippet") {
  struct Case {
    std::string snippet;
    int kind;
    int line;
    long long operand;
  };
  const Case cases[] = {
      {"int n = kv_idx - 7;\nreturn q_idx / n;", abi::Finding::division_by_zero, 2, 3},
      {"int n = kv_idx - 7;\n\nreturn q_idx % n;", abi::Finding::division_by_zero, 3, 3},
      {"return kv_idx * 1000000000;", abi::Finding::signed_overflow, 1, 3},
      {"int x = -2147483647;\nreturn x - kv_idx;", abi::Finding::signed_overflow, 2, -2147483647},
      {"int low = -2147483647 - 1;\nreturn low / (kv_idx - 9);", abi::Finding::division_overflow, 2,
       -2147483648LL},
      {"long long low = -9223372036854775807ll - 1;\nreturn low % (kv_idx - 9);",
       abi::Finding::division_overflow, 2, -9223372036854775807LL - 1},
      {"long long low = -9223372036854775807ll - 1;\nreturn low - kv_idx;",
       abi::Finding::signed_overflow, 2, -9223372036854775807LL - 1},
      {"return 1 << (kv_idx * 10000000000ll);", abi::Finding::shift_out_of_range, 1, 10000000000LL},
      {"int low = -2147483647;\nreturn abs(0) +\n abs(low - (kv_idx > 5));",
       abi::Finding::signed_overflow, 3, -2147483648LL},
      {"long long low = -9223372036854775807ll - 1;\nreturn abs(kv_idx > 5 ? low : 1);",
       abi::Finding::signed_overflow, 2, -9223372036854775807LL - 1},
      {"int low = -2147483647 - 1;\nreturn -(low + (kv_idx > 5));", abi::Finding::signed_overflow,
       2, -2147483648LL},
      {"return 1 << (kv_idx * 8);", abi::Finding::shift_out_of_range, 1, 32},
      {"float f = score * 1e20f;\nreturn (int)f;", abi::Finding::float_to_int_overflow, 2, 0},
      {"int w[3] = {1, 2, 3};\nreturn w[kv_idx];", abi::Finding::index_out_of_bounds, 2, 3},
      {"if (kv_idx < 5) {\n return score;\n}", abi::Finding::missing_return, 0, 0},
  };
  for (const Case& c : cases) {
    CAPTURE(c.snippet);
    const std::vector<Found> found = check(score_spec(c.snippet), arguments_of(4, 10));
    REQUIRE(!found.empty());
    CHECK(found.front().finding.kind == c.kind);
    CHECK(found.front().finding.kept == 1);
    CHECK(found.front().finding.operand[0] == c.operand);
    if (c.line == 0) continue;  // a missing return is at no line of the text
    CHECK(found.front().origin.in_snippet);
    CHECK(found.front().origin.line == c.line);
  }
}

TEST_CASE("checked interpretation: an element that had to be abandoned does not stop the others") {
  const Row row = evaluate<float>(score_spec("score + 6 / (kv_idx - 2)"), "evaluate_checked",
                                  arguments_of(4, 5), 3, 1);
  CHECK(row.modified == std::vector<double>{-2, -5, 1, 7, 4});
  const Row mask = evaluate<float>(mask_spec("6 / (kv_idx - 2) > 0"), "evaluate_checked",
                                   arguments_of(4, 5), 3, 1);
  CHECK(mask.keep == std::vector<int>{0, 0, 1, 1, 1});
}

TEST_CASE(
    "checked interpretation: an index outside a buffer is found, with the index and the extent") {
  Spec spec = score_spec("float a = table[kv_idx - 2];\nreturn a + bias(q_idx,\n  kv_idx);");
  spec.buffers["bias"] = {f32, {NamedDim::q_len, FreeDim{}}};
  spec.buffers["table"] = {f16, {FreeDim{}}};
  const float bias[4 * 5] = {};
  const unsigned short table[8] = {};
  const abi::BufferArgument buffers[] = {{bias, {4, 5}, {5, 1}}, {table, {8}, {1}}};
  abi::SnippetArguments arguments = arguments_of(4, 7);
  arguments.buffers = buffers;
  const std::vector<Found> found = check(spec, arguments);
  REQUIRE(found.size() == 2);
  CHECK(found[0].finding.kind == abi::Finding::index_out_of_bounds);
  CHECK(found[0].finding.operand[0] == -2);
  CHECK(found[0].finding.operand[1] == 8);
  CHECK(found[0].finding.kv_idx == 0);
  CHECK(found[0].finding.q_idx == 3);
  CHECK(found[0].origin.line == 1);
  CHECK(found[1].finding.operand[0] == 5);
  CHECK(found[1].finding.operand[1] == 5);
  CHECK(found[1].finding.kv_idx == 5);
  CHECK(found[1].origin.line >= 2);
}

TEST_CASE("checked interpretation: what happens in dropped elements is told apart") {
  Spec spec = score_spec("score / (6 / (kv_idx - 4))");
  spec.mask_mod = "kv_idx != 4";
  const std::vector<Found> found = check(spec, arguments_of(4, 5));
  REQUIRE(found.size() == 1);
  CHECK(found[0].finding.kept == 0);
}

TEST_CASE("checked interpretation: findings are handed over once") {
  const Spec spec = score_spec("score + 1 / (kv_idx - 2)");
  const abi::SnippetArguments arguments = arguments_of(4, 5);
  CHECK(check(spec, arguments).size() == 1);
  abi::Finding finding;
  CHECK(load_kernel(spec, "evaluate_checked")
            .symbol<int (*)(abi::Finding*, int)>("tilewright_take_findings")(&finding, 1) == 0);
}
