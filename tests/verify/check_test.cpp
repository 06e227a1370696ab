#include "verify/check.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"
#include "verify/random_inputs.hpp"

using namespace tilewright;
using namespace tilewright::verify;
using Catch::Matchers::ContainsSubstring;

namespace {

CheckOptions on_cpu() {
  CheckOptions options;
  options.attention.device = Device::cpu();
  return options;
}

Spec causal_documents() {
  return {.name = "causal_documents",
          .dtype = f32,
          .head_dim = 32,
          .score_mod = "score + 0.125 * slopes[h]",
          .mask_mod = "q_idx >= kv_idx && doc(b, q_idx) == doc(b, kv_idx)",
          .buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}},
                      {"doc",
                       {.dtype = i32,
                        .shape = {NamedDim::batch, NamedDim::kv_len},
                        .range = {{0, 3}},
                        .sorted = true}}},
          .block = {32, 32},
          .outputs = {.out = true, .lse = true}};
}

constexpr Shape kShape{.batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 90, .kv_len = 90};

// A spec with one line of score_mod and an i32 buffer `x` over kv_len of which every element is 0.
Spec spec_with_zeros(std::string score_mod, std::string mask_mod = "") {
  return {.name = "zeros",
          .dtype = f32,
          .head_dim = 16,
          .score_mod = std::move(score_mod),
          .mask_mod = std::move(mask_mod),
          .buffers = {{"x", {.dtype = i32, .shape = {NamedDim::kv_len}, .range = {{0, 0}}}}}};
}

Report check_zeros(const Spec& spec) {
  const Inputs inputs = random_inputs(spec, {.q_len = 20, .kv_len = 33}, 1);
  return check(spec, inputs.problem(), on_cpu());
}

Error error_of(const Spec& spec) {
  try {
    check_zeros(spec);
  } catch (const Error& error) {
    return error;
  }
  FAIL("no error");
  return Error(ErrorCode::internal, "");
}

// `rows` of k or v [.., rows, ..], from `first` on.
TensorView rows_of(const TensorView& tensor, std::int64_t first, std::int64_t rows) {
  TensorView view = tensor;
  view.data = static_cast<float*>(tensor.data) + first * tensor.strides[2];
  view.shape[2] = rows;
  return view;
}

}  // namespace

TEST_CASE("check: two devices are both judged, and compared") {
  CheckOptions options = on_cpu();
  options.compared_with = Device::cpu();
  const Spec spec = causal_documents();
  const Inputs inputs = random_inputs(spec, kShape, 3);
  const Report report = check(spec, inputs.problem(), options);
  REQUIRE(report.ok);
  REQUIRE(report.other_verdict->error_max == report.verdict.error_max);
  REQUIRE(report.agreement->difference == 0);
  REQUIRE(report.agreement->bound == 2 * report.verdict.bound_max);
}

TEST_CASE("check: a right kernel is right, and every step has a time") {
  const Inputs inputs = random_inputs(causal_documents(), kShape, 1);
  const Report report = check(causal_documents(), inputs.problem(), on_cpu());
  CAPTURE(report.reasons());
  CHECK(report.ok);
  CHECK(report.reasons().empty());
  REQUIRE(report.mask);
  REQUIRE(report.mask_verdict);
  CHECK(report.mask_verdict->tiles == 2 * 4 * 3 * 3);
  CHECK(report.undefined.operations.empty());
  CHECK(report.undefined.elements_checked == report.undefined.elements);
  CHECK(report.builds.size() == 2);
  for (const double ms :
       {report.ms.kernels, report.ms.interpretations, report.ms.undefined, report.ms.mask,
        report.ms.forward, report.ms.reference, report.ms.naive, report.ms.judge}) {
    CHECK(ms > 0);
  }
}

TEST_CASE("check: a kernel that reads k or v one row too far, or another head, is judged wrong") {
  const Spec spec = causal_documents();
  const Checker checker(spec, on_cpu());
  const Inputs inputs = random_inputs(spec, kShape, 1);
  Shape longer = kShape;
  ++longer.kv_len;
  const Inputs one_more = random_inputs(spec, longer, 1);
  Problem problem = inputs.problem();
  problem.k = rows_of(one_more.k, 0, kShape.kv_len);
  problem.v = rows_of(one_more.v, 0, kShape.kv_len);
  const Checker::Expected expected = checker.expected(problem);
  const Bindings bindings = checker.attention().bind(problem.snippet);
  const BlockMask mask = checker.attention().block_mask(problem.shape, bindings);

  const auto is_right = [&](const TensorView& k, const TensorView& v) {
    const Tensor out = Tensor::zeros(f32, {2, 4, 90, 32});
    const Tensor lse = Tensor::zeros(f32, {2, 4, 90});
    checker.attention().forward(
        {.q = problem.q, .k = k, .v = v, .out = out.view(), .lse = lse.view()}, mask, bindings);
    return judge({.out = read_values(out.view(), Layout::bhsd), .lse = read_lse(lse.view())},
                 expected.reference.values, expected.naive, expected.rule)
        .ok;
  };
  CHECK(is_right(problem.k, problem.v));
  CHECK_FALSE(is_right(rows_of(one_more.k, 1, kShape.kv_len), problem.v));
  CHECK_FALSE(is_right(problem.k, rows_of(one_more.v, 1, kShape.kv_len)));
  TensorView first_head_for_all = problem.v;
  first_head_for_all.strides[1] = 0;
  CHECK_FALSE(is_right(problem.k, first_head_for_all));
}

TEST_CASE("check: one tile on the wrong list is found and named") {
  const Spec spec = causal_documents();
  const Checker checker(spec, on_cpu());
  const Inputs inputs = random_inputs(spec, kShape, 1);
  const Problem problem = inputs.problem();
  const BlockMask mask =
      checker.attention().block_mask(kShape, checker.attention().bind(problem.snippet));
  const FloatInterpretation interpretation(spec, {});
  const auto verdict = [&](const TileLists& lists) {
    return check_block_mask(spec, problem, BlockMask(mask.fingerprint(), lists, "exact", 0),
                            interpretation, ThreadPool::shared());
  };
  CHECK(verdict(mask.lists()).ok);

  TileLists lost = mask.lists();  // the last partial tile
  lost.indices.pop_back();
  --lost.row_offsets.back();
  const MaskVerdict wrong = verdict(lost);
  CHECK_FALSE(wrong.ok);
  CHECK(wrong.wrong_tiles == 4);  // the list is shared by four heads
  CHECK_THAT(wrong.first_wrong, ContainsSubstring("is listed as empty, but mask_mod keeps"));
}

TEST_CASE("check: a division by zero is an error at its place, and no kernel runs") {
  const Error error = error_of(spec_with_zeros("const int y = 7;\nreturn score + y / x[kv_idx];"));
  CHECK(error.code() == ErrorCode::snippet);
  CHECK_THAT(error.message(), ContainsSubstring("divided by zero"));
  CHECK_THAT(error.message(), ContainsSubstring("q_idx 0, kv_idx 0"));
  REQUIRE(error.place());
  CHECK(error.place()->file == "score_mod");
  CHECK(error.place()->line == 2);
  CHECK(error.place()->excerpt == "return score + y / x[kv_idx];");
}

TEST_CASE("check: a division by zero of dropped elements is refused too, as it would trap") {
  const Error error = error_of(spec_with_zeros("score + 1 % x[kv_idx]", "x[kv_idx] != 0"));
  CHECK_THAT(error.message(), ContainsSubstring("which mask_mod drops"));
}

TEST_CASE("check: a missing return and the least int divided by -1 are refused") {
  CHECK_THAT(error_of(spec_with_zeros("if (x[kv_idx] == 0 && kv_idx > 3) { float y = score; } "
                                      "else { return score; }"))
                 .message(),
             ContainsSubstring("non-void function"));
  CHECK_THAT(error_of(spec_with_zeros("score + ((x[kv_idx] - 2147483647) - 1) / (x[kv_idx] - 1)"))
                 .message(),
             ContainsSubstring("overflows"));
}

TEST_CASE("check: a loop without an end is refused at its line, and others are counted alone") {
  for (const char* const loop : {"int i = 0;\nwhile (i < 1) { i *= 2; }\nreturn score;",
                                 "float x = score;\nfor (;;) { x += 1; }\nreturn x;",
                                 "int i = 1;\ndo { i = 1 - i; } while (i < 2);\nreturn score;",
                                 "if (h == 1) return score;\nfor (int i = 0; i >= 0; i = 0) if (i "
                                 "> 1) return 1; else i = 0;\n"
                                 "return score;",
                                 "auto f = [](int n) { int i = 0;\nwhile (i != n) i = 0; return i; "
                                 "};\nreturn score + f(1);"}) {
    CAPTURE(loop);
    const Error error = error_of(spec_with_zeros(loop));
    CHECK_THAT(error.message(), ContainsSubstring("the loops do not end within 134217728 rounds"));
    REQUIRE(error.place());
    CHECK(error.place()->line == 2);
    CHECK_THAT(error.hint(), ContainsSubstring("bound each loop"));
    REQUIRE(!error.notes().empty());
    CHECK_THAT(error.notes().front(), ContainsSubstring("it might not end"));
  }
  const Spec ends = spec_with_zeros(
      "float x = score; for (int i = 0; i < 3; ++i) for (int j = i; j < 4; ++j) if (j == 2) x += "
      "1; "
      "else x -= 1;\nint k = 0; while (k < 5) ++k; do --k; while (k > 1); if (k == 1) for (int i = "
      "0; "
      "i < 2; ++i) x += 1; else x = 0; while (bool(k > 0)) k -= 1; return x;");
  CHECK(check_zeros(ends).ok);
}

TEST_CASE("check: what is refused has the snippet's line and a hint of its own") {
  const Error missing = error_of(spec_with_zeros(
      "const float y = score;\nif (x[kv_idx] != 0 || kv_idx < 4) return y;\n", "x[0] == 0"));
  REQUIRE(missing.place());
  CHECK(missing.place()->file == "score_mod");
  CHECK(missing.place()->line == 2);
  CHECK_THAT(missing.place()->excerpt, ContainsSubstring("kv_idx < 4) return y;"));
  CHECK_THAT(missing.hint(), ContainsSubstring("add a return at the end"));

  const Error in_mask =
      error_of(spec_with_zeros("score", "if (x[kv_idx] == 0 && kv_idx < 4) return true;"));
  CHECK(in_mask.place()->file == "mask_mod");
  CHECK(in_mask.place()->line == 1);

  const Error least = error_of(spec_with_zeros(
      "long long least = -9223372036854775807ll - 1;\nreturn score + least / (x[kv_idx] - 1);"));
  CHECK(least.place()->line == 2);
  CHECK_THAT(least.message(), ContainsSubstring("the least one divided by -1"));
  CHECK_THAT(least.hint(), ContainsSubstring("x == -1"));
}

TEST_CASE("check: an overflow inside a function is at the line that calls it, and no int's end") {
  const Report report = check_zeros(spec_with_zeros(
      "const int low = x[kv_idx] - 2147483647;\nreturn score + 1e-9f * abs(low - 1) + "
      "1e-9f * (low - 1 + (x[kv_idx] - 1));"));
  REQUIRE(report.undefined.operations.size() == 2);
  for (const UndefinedOperation& operation : report.undefined.operations) {
    CHECK(operation.place.file == "score_mod");
    CHECK(operation.place.line == 2);
    CHECK_FALSE(operation.fatal);
  }
}

TEST_CASE("check: an index outside its extent is clamped and reported, a trusted one is refused") {
  Spec spec = spec_with_zeros("score + x[kv_idx + 7]");
  const Report report = check_zeros(spec);
  CHECK(report.ok);
  REQUIRE(report.undefined.operations.size() == 1);
  const UndefinedOperation& operation = report.undefined.operations[0];
  CHECK_THAT(operation.message,
             ContainsSubstring("index 33 of buffer \"x\" is outside its extent 33; it is "
                               "clamped (at b 0, h 0, q_idx 0, kv_idx 26)"));
  CHECK(operation.place.file == "score_mod");
  CHECK(operation.place.line == 1);
  CHECK(operation.kept);
  CHECK_FALSE(operation.fatal);

  spec.buffers["x"].bounds = Bounds::trusted;
  CHECK_THAT(error_of(spec).message(), ContainsSubstring("index 33 of buffer \"x\""));
}

TEST_CASE(
    "check: an index that is NaN, infinite or a float outside is reported, and the result right") {
  Spec spec = spec_with_zeros("score + near[log2(q_idx - kv_idx + 1)] + gain",
                              "q_idx >= kv_idx ||\nnear[kv_idx + 0.5] > 0");
  spec.buffers["near"] = {.dtype = f32, .shape = {8}};
  spec.buffers["gain"] = {.dtype = f32, .shape = {}};
  const Report report = check_zeros(spec);
  CHECK(report.ok);
  std::string messages;
  for (const UndefinedOperation& operation : report.undefined.operations) {
    CHECK(operation.clamped);
    CHECK_FALSE(operation.fatal);
    messages += to_string(operation.place) + ": " + operation.message + "\n";
  }
  CHECK_THAT(
      messages,
      ContainsSubstring(
          "score_mod:1:9: index NaN of buffer \"near\" is outside its extent 8; element 0") &&
          ContainsSubstring("score_mod:1:9: index -inf of buffer \"near\"") &&
          ContainsSubstring("mask_mod:2:1: index 8.5 of buffer \"near\" is outside "
                            "its extent 8; it is clamped"));
  spec.buffers["near"].bounds = Bounds::trusted;
  CHECK_THAT(error_of(spec).message(), ContainsSubstring("of buffer \"near\""));
}

TEST_CASE("check: an index in a broadcast dimension is within its extent") {
  const Spec spec = causal_documents();
  const Inputs inputs = random_inputs(spec, kShape, 1, {.broadcast_buffers = true});
  const Report report = check(spec, inputs.problem(), on_cpu());
  CHECK(report.ok);
  CHECK(report.undefined.operations.empty());
}

TEST_CASE("check: many elements are sampled, the first and the last row among them") {
  const Spec spec = spec_with_zeros("score + x[q_idx == q_len - 1 ? 99999 : kv_idx]");
  CheckOptions options = on_cpu();
  options.max_checked_elements = 3 * 50;
  const Inputs inputs = random_inputs(spec, {.batch = 2, .q_len = 40, .kv_len = 50}, 1);
  const Report report = check(spec, inputs.problem(), options);
  CHECK(report.undefined.elements == 2 * 40 * 50);
  CHECK(report.undefined.elements_checked == 3 * 50);
  CHECK(report.undefined.operations.size() == 1);
}

TEST_CASE("check: a buffer that breaks the spec's promise is named, whatever mask_mod reads") {
  Spec spec = causal_documents();
  spec.buffers.at("doc").sorted = Sorted::promised;
  spec.buffers.at("slopes").sorted = Sorted::promised;
  Inputs inputs = random_inputs(spec, kShape, 3);
  CHECK(check(spec, inputs.problem(), on_cpu()).ok);
  static_cast<int*>(inputs.buffers.at("doc").data())[kShape.kv_len + 5] = 9;
  static_cast<float*>(inputs.buffers.at("slopes").data())[2] = NAN;
  const Report report = check(spec, inputs.problem(), on_cpu());
  CHECK(!report.ok);
  REQUIRE(report.reasons().size() >= 2);
  CHECK_THAT(report.reasons()[0], Catch::Matchers::StartsWith("doc(1, 6) is "));
  CHECK_THAT(report.reasons()[0],
             Catch::Matchers::EndsWith(" after 9, but the spec promises that it is sorted"));
  CHECK_THAT(report.reasons()[1], Catch::Matchers::StartsWith("slopes[2] is nan after "));
}

TEST_CASE("check: a mask that float and double decide differently is judged by float, and said") {
  // 0.1f * 3 is 0.3 in float and more in double.
  const Spec spec = spec_with_zeros("", "0.1 * kv_idx <= 0.3 + 0 * x[kv_idx]");
  const Report report = check_zeros(spec);
  CAPTURE(report.reasons());
  CHECK(report.ok);
  CHECK(report.mask_disagreements > 0);
}

// v is NaN in one element of its first head, which rows before it drop in their tile.
TEST_CASE("check: where NaN of v may spread inside of a tile out is not judged") {
  Spec spec = causal_documents();
  spec.mask_mod = "q_idx >= kv_idx";
  spec.buffers.erase("doc");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Shape shape{.batch = 1, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 1100, .kv_len = 1100};
  Inputs inputs = random_inputs(spec, shape, 1);
  constexpr std::int64_t kOddRow = 1022, kOddColumn = 3;
  write_element(inputs.v.data(), f32, kOddRow * 32 + kOddColumn, nan);
  const Checker checker(spec, on_cpu());
  const Report report = checker.check(inputs.problem());
  CAPTURE(report.reasons());
  CHECK(report.ok);

  const AttentionValues right = checker.expected(inputs.problem()).reference.values;
  const auto judge_with = [&](std::int64_t h, std::int64_t row, std::int64_t column, double odd) {
    CheckOptions options = on_cpu();
    options.theirs = right;
    options.theirs->out.at(0, h, row, column) = odd;
    return check(spec, inputs.problem(), options).ok;
  };
  CHECK(judge_with(0, kOddRow - 10, kOddColumn, nan));
  CHECK_FALSE(judge_with(0, kOddRow - 10, kOddColumn, 1e3));      // a number is judged
  CHECK_FALSE(judge_with(0, kOddRow - 10, kOddColumn + 1, nan));  // v is finite there
  CHECK_FALSE(judge_with(0, 40, kOddColumn, nan));                // its tile is skipped
  CHECK_FALSE(judge_with(2, kOddRow - 10, kOddColumn, nan));      // of another head of v
  CHECK_FALSE(judge_with(0, kOddRow + 10, kOddColumn, 0));        // the row keeps it
}

TEST_CASE("check: a write outside out is found") {
  GuardedTensor out(f32, std::array<std::int64_t, 2>{3, 4}, {.row_padding = 2});
  static_cast<float*>(out.view().data)[4] = 1;
  REQUIRE(out.damage());
  Report report;
  report.damage = out.damage();
  CHECK(report.reasons().size() == 1);
}
