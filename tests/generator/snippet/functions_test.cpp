// The functions of snippets that C lacks, or treats in another way than Python.

#include <cmath>
#include <string>
#include <vector>

#include "tests/generator/evaluate.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;

namespace {

Spec spec_of(std::string score_mod) {
  return {.dtype = f32, .head_dim = 16, .score_mod = std::move(score_mod)};
}

std::vector<double> interpreted(const Spec& spec, const std::string& kernel, int kv_len,
                                double score = 0) {
  if (kernel == "evaluate_double")
    return evaluate<double>(spec, kernel, arguments_of(1, kv_len), 0, score).modified;
  return evaluate<float>(spec, kernel, arguments_of(1, kv_len), 0, score).modified;
}

double rounded_down(int a, int b) {
  return std::floor(static_cast<double>(a) / b);
}

}  // namespace

TEST_CASE("snippet functions: floor_div and floor_mod of integers are Python's") {
  for (const char* kernel : {"evaluate_float", "evaluate_double", "evaluate_checked"}) {
    for (const int divisor : {1, 2, 3, 7, -1, -2, -3, -7}) {
      const std::string d = std::to_string(divisor);
      const auto quotients = interpreted(spec_of("floor_div(kv_idx - 10, " + d + ")"), kernel, 21);
      const auto rests =
          interpreted(spec_of("floor_mod(kv_idx - 10ll, " + d + " + q_idx)"), kernel, 21);
      for (int i = 0; i < 21; ++i) {
        const int a = i - 10;
        CHECK(quotients[static_cast<std::size_t>(i)] == rounded_down(a, divisor));
        CHECK(rests[static_cast<std::size_t>(i)] == a - rounded_down(a, divisor) * divisor);
      }
    }
  }
}

TEST_CASE("snippet functions: floor_div and floor_mod of floats are Python's") {
  // Python: -7.5 // 2 is -4.0 and -7.5 % 2 is 0.5; 7.5 % -2 is -0.5; 1.0 % INFINITY is 1.0 and -1.0
  // % INFINITY is INFINITY.
  for (const char* kernel : {"evaluate_float", "evaluate_double", "evaluate_checked"}) {
    const auto of = [&](const std::string& text, double score) {
      return interpreted(spec_of(text), kernel, 1, score)[0];
    };
    CHECK(of("floor_div(score, 2)", -7.5) == -4);
    CHECK(of("floor_mod(score, 2)", -7.5) == 0.5);
    CHECK(of("floor_div(score, -2.0)", 7.5) == -4);
    CHECK(of("floor_mod(score, -2)", 7.5) == -0.5);
    CHECK(of("floor_div(kv_idx + 6, score)", 3) == 2);
    CHECK(of("floor_mod(score, INFINITY)", 1) == 1);
    CHECK(of("floor_mod(score, INFINITY)", -1) == INFINITY);
    CHECK(of("floor_div(score, INFINITY)", -1) == -1);
    CHECK(of("floor_div(score, 0.0)", -1) == -INFINITY);
    CHECK(std::isnan(of("floor_mod(score, 0.0)", 1)));
    CHECK(std::isnan(of("floor_div(score, 1.0)", INFINITY)));
    CHECK(std::isnan(of("floor_mod(score, 1.0)", NAN)));
    CHECK(of("floor_div(1.0, score)", 0.1f) == 9);  // the float 0.1 is above a tenth
  }
}

TEST_CASE("snippet functions: sign is of its argument's type, and NaN of a NaN") {
  const Spec spec = spec_of("sign(kv_idx - 1) / 2 + sign(score) * 10 + sign(true) * 100");
  for (const char* kernel : {"evaluate_float", "evaluate_double", "evaluate_checked"}) {
    CHECK(interpreted(spec, kernel, 3, -0.25) == std::vector<double>{90, 90, 90});
    CHECK(interpreted(spec, kernel, 1, 0)[0] == 100);
    CHECK(std::isnan(interpreted(spec, kernel, 1, NAN)[0]));
  }
}

TEST_CASE("snippet functions: erf, erfc, log1p and expm1 in double and in float") {
  const Spec spec =
      spec_of("erf(score) + 10 * erfcf(score) + 100 * log1p(score) + 1000 * expm1f(score)");
  for (const double x : {0.001, 0.7, 2.5}) {
    const double exact =
        std::erf(x) + 10 * std::erfc(x) + 100 * std::log1p(x) + 1000 * std::expm1(x);
    CHECK_THAT(interpreted(spec, "evaluate_double", 1, x)[0],
               Catch::Matchers::WithinRel(exact, 1e-14));
    CHECK_THAT(interpreted(spec, "evaluate_float", 1, x)[0],
               Catch::Matchers::WithinRel(exact, 1e-6));
  }
}

TEST_CASE("snippet functions: floor_div and floor_mod that would trap are found at their line") {
  struct Case {
    const char* text;
    int kind;
  };
  const Case cases[] = {
      {"int n = kv_idx - 7;\nreturn floor_div(q_idx, n);", abi::Finding::division_by_zero},
      {"int n = kv_idx - 7;\nreturn floor_mod(q_idx, n);", abi::Finding::division_by_zero},
      {"int n = -2147483647 - 1;\nreturn floor_div(n, kv_idx - 10);",
       abi::Finding::division_overflow},
      {"long long n = -9223372036854775807ll - 1;\nreturn floor_mod(n, kv_idx - 10);",
       abi::Finding::division_overflow},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const std::vector<Found> found = check(spec_of(c.text), arguments_of(4, 10));
    REQUIRE(!found.empty());
    CHECK(found.back().finding.kind == c.kind);
    CHECK(found.back().origin.line == 2);
  }
  CHECK(check(spec_of("floor_mod(score, kv_idx)"), arguments_of(4, 10)).empty());
}

TEST_CASE("snippet functions: the forward kernel computes them as the reference does") {
  struct Case {
    const char* text;
    Mods::Score exact;
  };
  const Case cases[] = {
      {"score * 0.5 * (1 + erf(score * 0.70710678))",
       [](double s, int, int, int, int) { return s * 0.5 * std::erfc(-s * 0.70710678); }},
      {"erfc(score) + log1p(fabs(score)) - expm1(-fabs(score))",
       [](double s, int, int, int, int) {
         return std::erfc(s) + std::log1p(std::fabs(s)) - std::expm1(-std::fabs(s));
       }},
      {"score + 0.25 * floor_mod(q_idx - kv_idx, 5) - 0.1 * floor_div(q_idx - kv_idx, 16)",
       [](double s, int, int, int q, int kv) {
         return s + 0.25 * (q - kv - 5 * rounded_down(q - kv, 5)) - 0.1 * rounded_down(q - kv, 16);
       }},
      {"score + floor_mod(0.25 * (q_idx - kv_idx), -3) + sign(q_idx - kv_idx)",
       [](double s, int, int, int q, int kv) {
         const double x = 0.25 * (q - kv);
         return s + x + 3 * std::floor(x / -3) + (q > kv) - (q < kv);
       }},
  };
  for (const Case& c : cases) {
    for (const bool precise : {false, true}) {
      CAPTURE(c.text, precise);
      Spec spec = spec_of(c.text);
      spec.precise_math = precise;
      spec.outputs.lse = true;
      Call call(spec, {.q_len = 70, .kv_len = 90});
      Mods mods;
      mods.score = c.exact;
      call.run(load_kernel(spec, "forward_lse"));
      const Call::Difference difference = call.difference(mods);
      CHECK(difference.out <= 1e-5);
      CHECK(difference.lse <= 1e-5);
    }
  }
}
