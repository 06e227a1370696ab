// Checks of calls whose k and v have elements of one byte.
#include <algorithm>
#include <cmath>
#include <string>

#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/one_byte_cases.hpp"
#include "verify/check.hpp"
#include "verify/judge.hpp"

using namespace tilewright;
using namespace tilewright::verify;

namespace {

CheckOptions on_cpu() {
  CheckOptions options;
  options.attention.device = Device::cpu();
  return options;
}

std::string reasons_of(const Report& report) {
  std::string text;
  for (const std::string& reason : report.reasons()) text += reason + "\n";
  return text;
}

AttentionValues one_row(std::initializer_list<double> values) {
  AttentionValues row;
  row.out = Values::zeros(1, 1, 1, static_cast<std::int64_t>(values.size()));
  std::copy(values.begin(), values.end(), row.out.data.begin());
  return row;
}

}  // namespace

TEST_CASE("check: dense calls whose k and v have one byte") {
  for (const one_byte::DenseCase& one : one_byte::dense_cases()) {
    CAPTURE(to_string(one.spec.dtype), to_string(one.spec.key_value_dtype()), one.spec.head_dim);
    const Inputs inputs = random_inputs(one.spec, one.shape, 5);
    const Report report = check(one.spec, inputs.problem(), on_cpu());
    INFO(reasons_of(report));
    CHECK(report.ok);
  }
}

TEST_CASE("packed check: k and v have one byte") {
  for (const one_byte::PackedCase& one : one_byte::packed_cases()) {
    CAPTURE(to_string(one.spec.dtype), to_string(one.spec.key_value_dtype()), one.spec.head_dim);
    const PackedInputs inputs = random_packed_inputs(one.spec, one.lengths, 5);
    const Report report = check(one.spec, inputs.problem(), on_cpu());
    INFO(reasons_of(report));
    CHECK(report.ok);
  }
}

TEST_CASE("check: a NaN in a kept element of one byte spreads") {
  const Spec spec = one_byte::spec_of(bf16, f8e4m3, 16);
  Inputs inputs = random_inputs(spec, {.q_len = 8, .kv_len = 8}, 1);
  static_cast<unsigned char*>(inputs.v.data())[4 * 16] = 0x7f;
  const Report report = check(spec, inputs.problem(), on_cpu());
  INFO(reasons_of(report));
  CHECK(report.ok);
}

// On a CPU weights are float32, so the bounds have no room for weights of 8 bits: naive's, where
// they are rounded so, is refused.
TEST_CASE("check: a CPU's f8e4m3 call is held to the precision of float32") {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const Spec spec = one_byte::float8_spec(64, bf16, "q_idx >= kv_idx");
    const Inputs inputs =
        random_inputs(spec, {.num_q_heads = 2, .num_kv_heads = 1, .q_len = 90, .kv_len = 90}, seed);
    const Checker checker(spec, on_cpu());
    const Checker::Expected wanted = checker.expected(inputs.problem());
    CHECK(wanted.rule.dtype == f32);
    const Report report = checker.check(inputs.problem(), {}, wanted);
    INFO(reasons_of(report));
    CHECK(report.ok);
    double greatest = 0;
    for (const double value : wanted.reference.values.out.data) {
      greatest = std::max(greatest, std::fabs(value));
    }
    // Half a unit of bf16 twice in naive's error, and two.
    CHECK(report.verdict.bound_max <= 3.01 * ulp_at(bf16, greatest));
    CHECK(report.verdict.lse_bound < 1e-3);

    CheckOptions wide = on_cpu();
    wide.theirs = wanted.reference.values;
    const Checker::Expected of_8_bits = Checker(spec, wide).expected(inputs.problem());
    CHECK_FALSE(judge(of_8_bits.naive, wanted.reference.values, wanted.naive, wanted.rule).ok);
    // A result from elsewhere may have such weights.
    wide.theirs = of_8_bits.naive;
    const Report theirs = check(spec, inputs.problem(), wide);
    REQUIRE(theirs.their_verdict);
    CHECK(theirs.their_verdict->ok);
  }
}

TEST_CASE("judge: an 8-bit out is clamped, and clamped values are exact") {
  const Rule rule{.dtype = bf16, .out_dtype = f8e4m3};
  const AttentionValues reference = one_row({1000, -448, 2}), naive = one_row({448, -448, 2});
  CHECK(judge(one_row({448, -448, 2}), reference, naive, rule).ok);
  CHECK_FALSE(judge(one_row({416, -448, 2}), reference, naive, rule).ok);
  CHECK_FALSE(judge(one_row({448, 448, 2}), reference, naive, rule).ok);
  CHECK_FALSE(judge(one_row({448, -448, 3}), reference, naive, rule).ok);
}

TEST_CASE("judge: a value just beyond the greatest may come out below it by the bound") {
  const Rule rule{.dtype = f8e4m3, .out_dtype = f8e4m3};
  // ulp(200) is 16, so bound_max is 2 * 16.
  const AttentionValues reference = one_row({450, -460, 500, 200}),
                        naive = one_row({448, -448, 448, 200});
  CHECK(judge(one_row({416, -448, 448, 200}), reference, naive, rule).ok);
  CHECK(judge(one_row({448, -416, 448, 200}), reference, naive, rule).ok);
  CHECK_FALSE(judge(one_row({384, -448, 448, 200}), reference, naive, rule).ok);
  CHECK_FALSE(judge(one_row({448, -448, 416, 200}), reference, naive, rule).ok);
  CHECK_FALSE(judge(one_row({448, 448, 448, 200}), reference, naive, rule).ok);
}

TEST_CASE("judge: a v_scale may round each element of out once more") {
  const AttentionValues exact{.out = one_row({1, 1}).out, .lse = {}};
  const AttentionValues off{.out = one_row({1 + 0x1p-23, 1 + 0x1p-23}).out, .lse = {}};
  Rule rule{.dtype = f32, .out_dtype = f32};
  CHECK_FALSE(judge(off, exact, exact, rule).ok);
  rule.scales_values = true;
  CHECK(judge(off, exact, exact, rule).ok);
}

TEST_CASE("judge: lse of 8-bit calls") {
  const Rule rule{.dtype = f8e4m3, .out_dtype = bf16};
  CHECK(lse_bound(0.5, rule) == 1e-2);
  CHECK(lse_bound(-20, rule) == 0.2);
}
