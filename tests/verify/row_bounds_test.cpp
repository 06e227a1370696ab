// No row of wild scores widens the bounds of the others.
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/limits.hpp"
#include "tests/support/small_checks.hpp"
#include "verify/check.hpp"
#include "verify/outputs.hpp"
#include "verify/random_inputs.hpp"
#include "verify/random_sequences.hpp"

using namespace tilewright;
using namespace tilewright::verify;

namespace {

constexpr std::int64_t kDim = test::kSmallDim, kWildRow = 7;
constexpr Shape kSmall = test::kSmallShape;
using test::options_on_cpu;

Spec spec_of(DType dtype) {
  return {.dtype = dtype,
          .head_dim = kDim,
          .outputs = {.lse = true, .max_scores = true, .weights = true}};
}

// Of which row 7 has scores of -1e30, and is a mean.
Spec masked_row(DType dtype) {
  Spec spec = spec_of(dtype);
  spec.score_mod = "return q_idx == 7 ? -1e30f : 20.0f * tanh(score / 20.0f);";
  return spec;
}

void enlarge_row(Tensor& q, double factor) {
  for (std::int64_t i = kWildRow * kDim; i < (kWildRow + 1) * kDim; ++i) {
    write_element(q.data(), q.dtype(), i, factor * read_element(q.data(), q.dtype(), i));
  }
}

// A call on a CPU, judged by the rule of a GPU, whose functions are fast.
struct FastCall {
  FastCall(const Spec& spec, const Inputs& inputs)
      : checker(spec, options_on_cpu()),
        wanted(checker.expected(inputs.problem())),
        right(run_call(checker.attention(), inputs.problem())) {
    wanted.rule.fast_functions = true;
  }

  Verdict judge(const std::function<void(AttentionValues&)>& change = {}) const {
    AttentionValues got = right;
    if (change) change(got);
    return verify::judge(got, wanted.reference.values, wanted.naive, wanted.rule);
  }

  Checker checker;
  Expected wanted;
  AttentionValues right;
};

// One fault after the other, each outside of the wild row.
void require_faults_seen(const FastCall& call) {
  const Verdict right = call.judge();
  CAPTURE(right.reasons);
  CHECK(right.ok);
  CHECK(right.bound_max < 0.2);
  CHECK(right.bound_rms < 0.1);
  const auto is_seen = [&](const std::function<void(AttentionValues&)>& change) {
    return !call.judge(change).ok;
  };
  CHECK(is_seen([](AttentionValues& got) { got.out.data.assign(got.out.data.size(), 0); }));
  CHECK(is_seen([](AttentionValues& got) { got.lse.at(0, 0, kWildRow + 1, 0) += 0.2; }));
  CHECK(is_seen([](AttentionValues& got) { got.max_scores.at(0, 0, kWildRow - 1, 0) += 0.2; }));
  CHECK(is_seen([](AttentionValues& got) { got.weights.data.assign(got.weights.data.size(), 0); }));
  CHECK(is_seen([](AttentionValues& got) { got.weights.at(0, 1, kWildRow + 1, 3) += 0.2; }));
  // Of the wild row: no weights give that.
  CHECK(is_seen([](AttentionValues& got) { got.out.at(0, 0, kWildRow, 3) = 30; }));
}

Rule rule_of(DType dtype) {
  return {.dtype = dtype, .out_dtype = dtype};
}

}  // namespace

TEST_CASE("row bounds: fast functions widen the bounds of the row with the scores alone") {
  for (const DType dtype : {bf16, f16, f32}) {
    CAPTURE(to_string(dtype));
    const Spec spec = masked_row(dtype);
    const FastCall call(spec, random_inputs(spec, kSmall, 1));
    require_faults_seen(call);
    CHECK(call.judge([](AttentionValues& got) { got.lse.at(0, 0, kWildRow, 0) = -1.0001e30; }).ok);
  }
}

TEST_CASE("row bounds: a row whose score_mod cancels has the errors of a typical row") {
  Spec spec = spec_of(bf16);
  spec.score_mod = "20.0f * tanh(score) - (q_idx == 7 ? 20.0f * tanh(score) : 0.0f)";
  const FastCall call(spec, random_inputs(spec, kSmall, 1));
  const auto is_right = [&](double error) {
    return call.judge([&](AttentionValues& got) { got.lse.at(0, 0, kWildRow, 0) += error; }).ok;
  };
  CHECK(is_right(0.008));  // 2^-11 of 20 is 0.0098
  CHECK_FALSE(is_right(0.013));
}

TEST_CASE("row bounds: a row of q at 1e12 widens its own") {
  for (const DType dtype : {bf16, f32}) {
    CAPTURE(to_string(dtype));
    Spec spec = spec_of(dtype);
    spec.score_mod = "score + 0.1f * tanh(score)";
    Inputs inputs = random_inputs(spec, kSmall, 1);
    enlarge_row(inputs.q, 1e12);
    require_faults_seen(FastCall(spec, inputs));
  }
}

TEST_CASE("row bounds: the scales' factor is of the row that has the scores") {
  Spec spec = spec_of(f32);
  spec.k_scale = "1.0f";
  spec.outputs.weights = false;  // which are made from an lse of 1e12
  Inputs inputs = random_inputs(spec, kSmall, 1);
  enlarge_row(inputs.q, 1e12);
  CheckOptions options = options_on_cpu();
  options.theirs = Checker(spec, options).expected(inputs.problem()).reference.values;
  const Report right = check(spec, inputs.problem(), options);
  CAPTURE(right.reasons());
  CHECK(right.ok);
  CHECK(right.verdict.bound_max < 1e-4);
  options.theirs->out.at(0, 0, kWildRow + 1, 5) += 1e-3;
  const Report wrong = check(spec, inputs.problem(), options);
  CHECK_FALSE(wrong.their_verdict->ok);
  CHECK_FALSE(wrong.their_agreement->ok);
}

TEST_CASE("row bounds: a row of a sequence widens no other of it") {
  Spec spec = masked_row(bf16);
  spec.layout = Layout::packed;
  spec.outputs.weights = false;
  spec.score_mod = "return q_idx == 10 ? -1e30f : 20.0f * tanh(score / 20.0f);";
  const PackedInputs packed = random_packed_inputs(
      spec, {.num_q_heads = 1, .num_kv_heads = 1, .sequences = {{8, 12}, {9, 9}}}, 1);
  const Checker checker(spec, options_on_cpu());
  Expected wanted = checker.expected(packed.problem());
  wanted.rule.fast_functions = true;
  AttentionValues zeros = wanted.reference.values;
  CHECK(judge(zeros, wanted.reference.values, wanted.naive, wanted.rule).ok);
  for (double& element : zeros.out.data) element = std::isnan(element) ? element : 0;
  CHECK_FALSE(judge(zeros, wanted.reference.values, wanted.naive, wanted.rule).ok);
}

TEST_CASE("row bounds: naive's error of an lse counts as a share of its row's products") {
  for (const F32Products products : {F32Products::ieee, F32Products::tf32}) {
    AttentionValues reference;
    reference.out = Values::zeros(1, 1, 2, 1);
    reference.lse = {1, 1, 2, 1, {1.0, 1.0}};  // where 1e12 cancels in the first row
    AttentionValues naive = reference, got = reference;
    naive.lse.data[0] = 5e8;
    Rule rule = rule_of(f32);
    rule.products = products;
    rule.sizes.products = {1, 1, 2, 1, {1e12, 2.0}};
    got.lse.data = {-6e8, 1.0001};
    CHECK(judge(got, reference, naive, rule).ok);
    got.lse.data[1] = 1.01;
    CHECK_FALSE(judge(got, reference, naive, rule).ok);
    got.lse.data = {-2e9, 1};
    CHECK_FALSE(judge(got, reference, naive, rule).ok);
  }
}

TEST_CASE("row bounds: elements whose sums may overflow are judged among themselves") {
  for (const DType dtype : {f32, bf16}) {
    CAPTURE(to_string(dtype));
    Spec spec = spec_of(dtype);
    Inputs inputs = random_inputs(spec, kSmall, 1);
    for (std::int64_t row = 0; row < kSmall.kv_len; ++row) {
      const std::int64_t at = row * kDim + 2;  // 30 of them times 2^8 are beyond float32
      write_element(inputs.v.data(), dtype, at, 1e36 * (row % 2 == 0 ? 1 : 1.25));
    }
    CheckOptions options = options_on_cpu();
    options.theirs = Checker(spec, options).expected(inputs.problem()).reference.values;
    const Report right = check(spec, inputs.problem(), options);
    CAPTURE(right.reasons());
    CHECK(right.ok);
    CHECK(right.unjudged.overflow == 0);
    const auto is_seen = [&](std::int64_t column, double value) {
      CheckOptions wrong = options;
      wrong.theirs->out.at(0, 0, 3, column) = value;
      return !check(spec, inputs.problem(), wrong).their_verdict->ok;
    };
    CHECK(is_seen(5, 9));
    CHECK(is_seen(2, 0));
    CHECK(is_seen(2, 1.3e36));
  }
}
