#include "verify/judge.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "runtime/api/thread_pool.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/limits.hpp"
#include "tests/verify/faulty_attention.hpp"
#include "verify/naive.hpp"
#include "verify/random.hpp"

using namespace tilewright;
using namespace tilewright::verify;
using tilewright::tests::Fault;

namespace {

Values normal_values(std::int64_t batch, std::int64_t heads, std::int64_t rows, std::int64_t width,
                     DType dtype, std::string_view stream) {
  Values values = Values::zeros(batch, heads, rows, width);
  Random random(1, stream);
  for (double& value : values.data) value = round_to(dtype, random.normal());
  return values;
}

// 6 query heads on 2 kv heads.
DenseProblem causal_problem(DType dtype, std::int64_t q_len, std::int64_t kv_len) {
  return {.q = normal_values(2, 6, q_len, 32, dtype, "q"),
          .k = normal_values(2, 2, kv_len, 32, dtype, "k"),
          .v = normal_values(2, 2, kv_len, 32, dtype, "v"),
          .scale = 1 / std::sqrt(32.0)};
}

Verdict judge_tiled(const DenseProblem& problem, DType dtype, Fault fault) {
  ThreadPool& threads = ThreadPool::shared();
  const Reference reference = reference_attention(problem, tests::causal<double>(problem), threads);
  const AttentionValues naive =
      naive_attention(problem, tests::causal<float>(problem), dtype, dtype, threads);
  return judge(tests::tiled_attention(problem, dtype, fault), reference.values, naive,
               {.dtype = dtype, .out_dtype = dtype});
}

// Five tiles of 32 columns.
Verdict judge_tiled(DType dtype, Fault fault) {
  return judge_tiled(causal_problem(dtype, 160, 160), dtype, fault);
}

// got and naive are the reference rounded to the dtype.
struct Rounded {
  explicit Rounded(DType dtype, std::int64_t rows = 16) : rule{.dtype = dtype, .out_dtype = dtype} {
    reference.out = normal_values(2, 8, rows, 64, DType::f32, "out");
    reference.lse = normal_values(2, 8, rows, 1, DType::f32, "lse");
    naive = reference;
    for (double& value : naive.out.data) value = round_to(dtype, value);
    got = naive;
  }
  Verdict verdict() const { return judge(got, reference, naive, rule); }

  Rule rule;
  AttentionValues reference, naive, got;
};

}  // namespace

TEST_CASE("judge: an honest tiled computation in float32 is right in every dtype") {
  for (const DType dtype : {f32, f16, bf16}) {
    CAPTURE(to_string(dtype));
    const Verdict verdict = judge_tiled(dtype, Fault::none);
    CAPTURE(verdict.reasons);
    CHECK(verdict.ok);
    CHECK_FALSE(verdict.first_bad);
    CHECK(verdict.error_max > 0);
    CHECK(verdict.error_max <= verdict.bound_max);
    CHECK(verdict.lse_error <= verdict.lse_bound);
  }
}

TEST_CASE("judge: every planted fault is judged wrong in every dtype") {
  const Fault fault =
      GENERATE(Fault::kv_off_by_one, Fault::last_column_lost, Fault::missing_rescale,
               Fault::wrong_kv_head, Fault::swapped_heads, Fault::scale_twice);
  for (const DType dtype : {f32, f16, bf16}) {
    CAPTURE(static_cast<int>(fault), to_string(dtype));
    const Verdict verdict = judge_tiled(dtype, fault);
    CHECK_FALSE(verdict.ok);
    CHECK_FALSE(verdict.reasons.empty());
    CHECK(verdict.first_bad);
  }
}

TEST_CASE("judge: sums kept in bf16 are judged wrong, even where out is bf16") {
  for (const DType dtype : {f16, bf16}) {
    const DenseProblem problem = causal_problem(dtype, 16, 1024);
    CHECK(judge_tiled(problem, dtype, Fault::none).ok);
    CHECK_FALSE(judge_tiled(problem, dtype, Fault::bf16_accumulator).ok);
  }
}

TEST_CASE("judge: a wrong lse is judged wrong though out is right") {
  const Verdict verdict = judge_tiled(f32, Fault::natural_lse_in_log2);
  CHECK_FALSE(verdict.ok);
  REQUIRE(verdict.reasons.size() == 1);
  CHECK(verdict.first_bad->tensor == "lse");
}

TEST_CASE("judge: one bad element in a million is found and named") {
  for (const DType dtype : {f32, f16, bf16}) {
    CAPTURE(to_string(dtype));
    Rounded million(dtype, 1024);
    REQUIRE(million.verdict().ok);
    million.got.out.at(1, 3, 777, 21) += 0.25;
    const Verdict verdict = million.verdict();
    CHECK_FALSE(verdict.ok);
    REQUIRE(verdict.first_bad);
    CHECK(verdict.first_bad->b == 1);
    CHECK(verdict.first_bad->h == 3);
    CHECK(verdict.first_bad->row == 777);
    CHECK(verdict.first_bad->column == 21);
    CHECK(verdict.first_bad->got == million.got.out.at(1, 3, 777, 21));
    CHECK(verdict.first_bad->wanted == million.reference.out.at(1, 3, 777, 21));
  }
}

TEST_CASE("judge: NaN or infinity in the result is judged wrong where the reference is finite") {
  for (const double bad : {kNan, kInf, -kInf}) {
    Rounded sample(bf16);
    sample.got.out.at(0, 0, 5, 6) = bad;
    const Verdict verdict = sample.verdict();
    CHECK_FALSE(verdict.ok);
    CHECK(verdict.first_bad->row == 5);
  }
}

TEST_CASE("judge: NaN and infinity are demanded where the reference has them") {
  for (const double wanted : {kNan, kInf, -kInf}) {
    Rounded sample(bf16);
    sample.reference.out.at(0, 0, 5, 6) = wanted;
    CHECK_FALSE(sample.verdict().ok);
    sample.got.out.at(0, 0, 5, 6) = wanted;
    CHECK(sample.verdict().ok);
  }
  Rounded sample(bf16);
  sample.reference.out.at(0, 0, 5, 6) = kInf;
  sample.got.out.at(0, 0, 5, 6) = -kInf;
  CHECK_FALSE(sample.verdict().ok);
}

TEST_CASE("judge: a reference that overflows out's dtype demands infinity") {
  Rounded sample(f16);
  sample.reference.out.at(0, 0, 0, 0) = 1e6;
  sample.got.out.at(0, 0, 0, 0) = 65504;
  CHECK_FALSE(sample.verdict().ok);
  sample.got.out.at(0, 0, 0, 0) = kInf;
  CHECK(sample.verdict().ok);
}

TEST_CASE("judge: near the overflow of out's dtype both sides of it are right") {
  // Halfway between f16's greatest number and 65536 infinity begins.
  for (const double reference : {65519.0, 65521.0, -65519.0, -65521.0}) {
    Rounded sample(f16);
    sample.reference.out.at(0, 0, 0, 0) = reference;
    sample.naive.out.at(0, 0, 0, 0) = round_to(f16, reference);
    for (const double right : {kInf, 65504.0}) {
      CAPTURE(reference, right);
      sample.got.out.at(0, 0, 0, 0) = std::copysign(right, reference);
      CHECK(sample.verdict().reasons == std::vector<std::string>());
    }
    for (const double wrong : {kNan, 60000.0, -kInf}) {
      CAPTURE(reference, wrong);
      sample.got.out.at(0, 0, 0, 0) = std::copysign(1, reference) * wrong;
      CHECK_FALSE(sample.verdict().ok);
    }
  }
}

TEST_CASE("judge: an infinite reference is clamped where out's dtype has no infinity") {
  for (const double sign : {1.0, -1.0}) {
    Rounded sample(f8e4m3);
    sample.rule.dtype = f32;
    sample.reference.out.at(0, 0, 5, 6) = sign * kInf;
    sample.naive.out.at(0, 0, 5, 6) = sign * 448;
    sample.got.out.at(0, 0, 5, 6) = sign * 448;
    const Verdict right = sample.verdict();
    CHECK(right.ok);
    CHECK(right.error_max < 1);
    CHECK(right.bound_max < 2);
    for (const double wrong : {416.0, -448.0, kNan}) {
      sample.got.out.at(0, 0, 5, 6) = sign * wrong;
      CHECK_FALSE(sample.verdict().ok);
    }
    sample.got.out.at(0, 0, 5, 6) = sign * 448;
    sample.got.out.at(0, 0, 9, 9) += 8;
    CHECK_FALSE(sample.verdict().ok);
    sample.got = sample.naive;
    sample.reference.out.at(1, 0, 0, 0) = kNan;
    CHECK_FALSE(sample.verdict().ok);
    sample.got.out.at(1, 0, 0, 0) = kNan;
    CHECK(sample.verdict().ok);
  }
}

TEST_CASE("judge: a bound beyond the greatest number allows either sign") {
  CHECK(same_pattern(-0.1, 0, 7e4, f16));
  CHECK(same_pattern(kInf, 1, 7e4, f16));
  CHECK_FALSE(same_pattern(kNan, 0, 7e4, f16));
  CHECK_FALSE(same_pattern(kInf, 1, 6e4, f16));
}

TEST_CASE("judge: NaN has no sign in a message") {
  Rounded sample(f32);
  sample.got.out.at(0, 0, 5, 6) = -kNan;
  CHECK_THAT(sample.verdict().reasons.at(0), Catch::Matchers::ContainsSubstring(" is nan, but"));
}

TEST_CASE("judge: an empty row's lse must be -inf, neither NaN nor a large number") {
  Rounded sample(f32);
  sample.reference.lse.at(0, 0, 9, 0) = -kInf;
  for (const double bad : {kNan, kInf, -3.4e38, 0.0}) {
    sample.got.lse.at(0, 0, 9, 0) = bad;
    const Verdict verdict = sample.verdict();
    CHECK_FALSE(verdict.ok);
    CHECK(verdict.first_bad->tensor == "lse");
    CHECK(verdict.first_bad->row == 9);
  }
  sample.got.lse.at(0, 0, 9, 0) = -kInf;
  CHECK(sample.verdict().ok);
}

TEST_CASE(
    "judge: lse may be off by 2e-3 + 2^-19 |lse| in 16 bits and by 4e-5 max(1, |lse|) in f32") {
  struct Case {
    DType dtype;
    double lse, error;
    bool ok;
  };
  for (const Case& c :
       {Case{bf16, 1, 1.9e-3, true}, Case{bf16, 1, 2.1e-3, false}, Case{f16, 100, 2.3e-3, false},
        Case{bf16, -65504, 0.12, true}, Case{bf16, -65504, 0.13, false},
        Case{f32, 0.5, 3.9e-5, true}, Case{f32, 0.5, 4.1e-5, false}, Case{f32, -20, 7.9e-4, true},
        Case{f32, -20, 8.1e-4, false}}) {
    Rounded sample(c.dtype);
    sample.reference.lse.at(1, 7, 15, 0) = sample.naive.lse.at(1, 7, 15, 0) = c.lse;
    sample.got.lse.at(1, 7, 15, 0) = c.lse + c.error;
    CAPTURE(to_string(c.dtype), c.lse, c.error);
    CHECK(sample.verdict().ok == c.ok);
    CHECK(std::fabs(sample.verdict().lse_error - c.error) < 1e-9);
  }
}

TEST_CASE("judge: lse in f32 may be off by twice naive's share more") {
  Rounded sample(f32);
  sample.reference.lse.at(1, 7, 15, 0) = -20;
  sample.naive.lse.at(1, 7, 15, 0) = -20 + 20e-5;
  sample.reference.lse.at(0, 0, 3, 0) = sample.naive.lse.at(0, 0, 3, 0) = 0.5;
  for (const auto& [error, ok] : {std::pair{5.9e-5, true}, std::pair{6.1e-5, false}}) {
    sample.got.lse = sample.reference.lse;
    sample.got.lse.at(0, 0, 3, 0) = 0.5 + error;
    CHECK(sample.verdict().ok == ok);
    sample.got.lse = sample.reference.lse;
    sample.got.lse.at(1, 7, 15, 0) = -20 + 20 * error;
    CHECK(sample.verdict().ok == ok);
  }
}

TEST_CASE("judge: scales of scores give out three roundings of their size") {
  AttentionValues reference;
  reference.out = {1, 1, 1, 1, {1.0}};
  const auto with_out = [&](double out, double score) {
    AttentionValues got = reference;
    got.out.data[0] = out;
    const Rule rule{.dtype = f32,
                    .out_dtype = f32,
                    .scaled_scores = true,
                    .sizes = {.scores = {1, 1, 1, 1, {score}}}};
    return judge(got, reference, reference, rule).ok;
  };
  CHECK_FALSE(with_out(1 + 0x1p-19, 0));
  CHECK(with_out(1 + 23 * 0x1p-23, 16.0));
  CHECK_FALSE(with_out(1 + 27 * 0x1p-23, 16.0));
}

TEST_CASE("judge: the bounds are 2 naive + 2 ulp(max) and 2 naive + ulp(rms) / 4") {
  AttentionValues reference, naive;
  reference.out = {1, 1, 1, 4, {3.0, -5.0, 1.0, 1.0}};
  naive.out = {1, 1, 1, 4, {3.0, -5.0, 1.0, 1.5}};
  const Verdict verdict = judge(reference, reference, naive, {.dtype = bf16, .out_dtype = bf16});
  CHECK(verdict.ok);
  CHECK(verdict.naive_max == 0.5);
  CHECK(verdict.naive_rms == 0.25);
  CHECK(verdict.bound_max == 2 * 0.5 + 2 * 0x1p-5);   // 5 lies in [4, 8), 7 bits below 4
  CHECK(verdict.bound_rms == 2 * 0.25 + 0x1p-6 / 4);  // rms 3 lies in [2, 4)
}

TEST_CASE("judge: fast functions widen the bounds in proportion to the greatest score") {
  AttentionValues reference, naive;
  reference.out = {1, 1, 1, 4, {3.0, -5.0, 1.0, 1.0}};
  reference.lse = {1, 1, 1, 1, {2.0}};
  naive.out = reference.out;
  Rule rule{.dtype = f32, .out_dtype = f32};
  const Verdict exact = judge(reference, reference, naive, rule);
  rule.fast_functions = true;
  rule.sizes.scores = {1, 1, 1, 1, {64}};
  const Verdict fast = judge(reference, reference, naive, rule);
  CHECK(fast.bound_max == exact.bound_max + 64.0 / 2048 * 5);
  CHECK(fast.bound_rms == exact.bound_rms + 64.0 / 2048 * 3);
  CHECK(std::fabs(fast.lse_bound - (8e-5 + 64.0 / 2048)) < 1e-15);
}

TEST_CASE("judge: where naive itself breaks down it widens nothing") {
  Rounded sample(f16);
  sample.naive.out.at(0, 0, 0, 0) = kInf;
  sample.naive.out.at(0, 0, 0, 1) = kNan;
  CHECK(sample.verdict().ok);
  CHECK(sample.verdict().bound_max < 0.02);
}

TEST_CASE("naive: lse of 16 bits comes from float32's scores") {
  const DenseProblem problem = causal_problem(bf16, 16, 16);
  const auto naive = [&](DType dtype) {
    return naive_attention(problem, tests::causal<float>(problem), dtype, dtype,
                           ThreadPool::shared());
  };
  const AttentionValues in_float = naive(f32);
  for (const DType dtype : {f16, bf16}) {
    CHECK(naive(dtype).lse.data == in_float.lse.data);
    CHECK(naive(dtype).max_scores.data == in_float.max_scores.data);
    CHECK(naive(dtype).out.data != in_float.out.data);
  }
  CHECK(naive(f8e4m3).lse.data.empty());
}

TEST_CASE("judge: results of other sizes are refused") {
  Rounded sample(f32);
  sample.got.out = Values::zeros(2, 8, 16, 32);
  CHECK_THROWS_AS(sample.verdict(), Error);
}
