// Elements that are left out, and that they widen no bound of the others.
#include "verify/unjudged.hpp"

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/limits.hpp"
#include "tests/support/small_checks.hpp"
#include "verify/check.hpp"
#include "verify/random_inputs.hpp"
#include "verify/random_sequences.hpp"

using namespace tilewright;
using namespace tilewright::verify;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::int64_t kRows = test::kSmallRows, kDim = test::kSmallDim, kOddColumn = 2,
                       kOddRow = 3;
constexpr Shape kSmall = test::kSmallShape;
using test::options_on_cpu;

Spec spec_of(DType dtype) {
  return {.dtype = dtype, .head_dim = kDim, .outputs = {.lse = true}};
}

// The first head's column of v that is near float32's greatest number: sums overflow.
void enlarge_column(Tensor& v, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row) {
    write_element(v.data(), v.dtype(), row * kDim + kOddColumn, 3e38);
  }
}

// A row of q whose scores overflow.
void enlarge_row(Tensor& q) {
  for (std::int64_t i = 0; i < kDim; ++i) {
    write_element(q.data(), q.dtype(), kOddRow * kDim + i, 3e38);
  }
}

// A result from elsewhere: the reference, with infinity where the kernel has it, and one more
// change.
Report check_theirs(const Spec& spec, const Inputs& inputs,
                    const std::function<void(AttentionValues&)>& change) {
  CheckOptions options = options_on_cpu();
  options.theirs = Checker(spec, options).expected(inputs.problem()).reference.values;
  change(*options.theirs);
  return check(spec, inputs.problem(), options);
}

void put_infinity(AttentionValues& values) {
  for (std::int64_t row = 0; row < kRows; ++row) values.out.at(0, 0, row, kOddColumn) = kInf;
}

// After the change an element of the other head is off by 0.5.
void require_wrong_element_seen(const Spec& spec, const Inputs& inputs,
                                const std::function<void(AttentionValues&)>& change) {
  const Report wrong = check_theirs(spec, inputs, [&](AttentionValues& values) {
    change(values);
    values.out.at(0, 1, kOddRow, 5) += 0.5;
  });
  CHECK_FALSE(wrong.their_verdict->ok);
  CHECK_FALSE(wrong.their_agreement->ok);
}

}  // namespace

TEST_CASE("unjudged: what is left out is NaN in the result and in its reference") {
  Unjudged unjudged{.infinite = Values::zeros(1, 1, 2, 3), .out_rows = Values::zeros(1, 1, 2, 1)};
  AttentionValues reference{.out = {1, 1, 2, 3, {1e37, 1, 2, 3, 4, 5}}}, got = reference;
  got.out.data = {kInf, 1, kInf, 3, 4, 5};
  unjudged.infinite.at(0, 0, 0, 0) = static_cast<double>(NotJudged::overflow);
  unjudged.infinite.at(0, 0, 0, 1) = static_cast<double>(NotJudged::overflow);
  unjudged.out_rows.at(0, 0, 1, 0) = static_cast<double>(NotJudged::scale);
  const Judged judged = leave_out(unjudged, reference, reference, f32, got);
  CHECK(std::isnan(judged.got.out.data[0]));
  CHECK(std::isnan(judged.reference.out.data[0]));
  CHECK(judged.reference.out.data[1] == 1);  // a finite element is judged
  CHECK(judged.got.out.data[2] == kInf);
  CHECK(judged.reference.out.data[2] == 2);
  CHECK(std::isnan(judged.got.out.data[4]));
  CHECK(judged.counts.overflow == 1);
  CHECK(judged.counts.scale == 3);
}

TEST_CASE("unjudged: an element that is left out widens no bound of out") {
  for (const DType dtype : {f32, bf16}) {
    CAPTURE(to_string(dtype));
    const Spec spec = spec_of(dtype);
    Inputs inputs = random_inputs(spec, kSmall, 1);
    enlarge_column(inputs.v, kSmall.kv_len);
    const Report right = check_theirs(spec, inputs, put_infinity);
    CAPTURE(right.reasons());
    CHECK(right.ok);
    CHECK(right.unjudged.overflow == kRows);
    CHECK(right.verdict.bound_max < 0.1);
    CHECK(right.verdict.error_max < 0.1);
    CHECK(right.verdict.naive_max < 0.1);
    CHECK(right.their_agreement->bound < 0.2);
    require_wrong_element_seen(spec, inputs, put_infinity);
  }
}

TEST_CASE("unjudged: NaN that spreads inside a tile widens no bound of out") {
  Spec spec = spec_of(f32);
  spec.mask_mod = "q_idx >= kv_idx";
  Inputs inputs = random_inputs(spec, kSmall, 1);
  // Row 18 and what comes after it keep the NaN; the others drop it, and have a large number.
  write_element(inputs.v.data(), f32, 18 * kDim + kOddColumn, kNan);
  for (std::int64_t row = 0; row < 18; ++row) {
    write_element(inputs.v.data(), f32, row * kDim + kOddColumn, 1e30);
  }
  const auto put_nan = [](AttentionValues& values) {
    for (std::int64_t row = 0; row < 18; ++row) values.out.at(0, 0, row, kOddColumn) = kNan;
  };
  const Report right = check_theirs(spec, inputs, put_nan);
  CAPTURE(right.their_verdict->reasons);
  CHECK(right.their_verdict->ok);
  CHECK(right.their_verdict->bound_max < 0.1);
  require_wrong_element_seen(spec, inputs, put_nan);  // where neither is left out
}

TEST_CASE("unjudged: scores of a row that is left out widen no bound") {
  Spec spec = spec_of(f32);
  spec.q_scale = "1.0f";  // whose error is a share of the greatest score
  spec.outputs.max_scores = spec.outputs.weights = true;
  Inputs inputs = random_inputs(spec, kSmall, 1);
  enlarge_row(inputs.q);
  const auto unchanged = [](AttentionValues&) {};
  const Report right = check_theirs(spec, inputs, unchanged);
  CAPTURE(right.reasons());
  CHECK(right.ok);
  CHECK(right.unjudged.overflow == kDim);
  CHECK(right.verdict.bound_max < 0.1);
  CHECK(right.verdict.lse_bound < 0.1);
  CHECK(right.verdict.max_scores_bound < 0.1);
  CHECK(right.verdict.weights_bound < 0.1);
  const Report wrong_weights = check_theirs(spec, inputs, [](AttentionValues& values) {
    values.weights.at(0, 0, kOddRow + 1, 5) += 0.1;
  });
  CHECK_FALSE(wrong_weights.their_verdict->ok);
  const Report wrong = check_theirs(
      spec, inputs, [](AttentionValues& values) { values.out.at(0, 0, kOddRow + 1, 5) += 0.5; });
  CHECK_FALSE(wrong.their_verdict->ok);
  CHECK_FALSE(wrong.their_agreement->ok);
  const Report wrong_lse = check_theirs(
      spec, inputs, [](AttentionValues& values) { values.lse.at(0, 0, kOddRow + 1, 0) += 0.5; });
  CHECK_FALSE(wrong_lse.their_verdict->ok);
  CHECK_FALSE(wrong_lse.their_agreement->ok);
}

TEST_CASE("unjudged: a sequence's row that is left out widens no bound of the others") {
  Spec spec = spec_of(f32);
  spec.q_scale = "1.0f";
  spec.layout = Layout::packed;
  PackedInputs packed = random_packed_inputs(
      spec, {.num_q_heads = 1, .num_kv_heads = 1, .sequences = {{8, 12}, {9, 9}}}, 1);
  enlarge_row(packed.inputs.q);
  const Report report = check(spec, packed.problem(), options_on_cpu());
  CAPTURE(report.reasons());
  CHECK(report.ok);
  CHECK(report.unjudged.overflow == kDim);
  CHECK(report.verdict.bound_max < 0.1);
}

TEST_CASE("unjudged: zeros of rows that keep nothing show nothing of the others") {
  Spec spec = spec_of(f32);
  spec.mask_mod = "q_idx >= kv_idx + 5";
  Inputs inputs = random_inputs(spec, kSmall, 1);
  for (std::int64_t i = 0; i < inputs.q.numel(); ++i) {
    write_element(inputs.q.data(), f32, i, 3e38);
  }
  const auto unchanged = [](AttentionValues&) {};
  const Report report = check_theirs(spec, inputs, unchanged);
  CAPTURE(report.unjudged.overflow, report.unjudged.unreached);
  CHECK(report.ok);
  CHECK(report.unjudged.unreached == 5 * kSmall.num_q_heads * kDim);
  CHECK(report.judged() == report.unjudged.unreached);
  CHECK(report.says_nothing(report.unjudged));
  CHECK_FALSE(report.shows_right());
  CHECK_THAT(report.reasons()[0], ContainsSubstring("that a kept score reaches"));
  spec.mask_mod = "false";
  CHECK(check_theirs(spec, inputs, unchanged).shows_right());
}

TEST_CASE("unjudged: elements that are NaN in the reference are counted") {
  Spec spec = spec_of(f32);
  spec.mask_mod = "q_idx >= kv_idx + 5";
  Inputs inputs = random_inputs(spec, kSmall, 1);
  const auto unchanged = [](AttentionValues&) {};
  CHECK(check_theirs(spec, inputs, unchanged).nan == 0);
  write_element(inputs.q.data(), f32, 7 * kDim, kNan);
  CHECK(check_theirs(spec, inputs, unchanged).nan == kDim);
}
