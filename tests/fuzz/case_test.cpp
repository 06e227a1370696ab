#include "fuzz/case.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "fuzz/expression.hpp"
#include "generator/spec/spec.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify::fuzz;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Statement result(Expression value) {
  return {.kind = Statement::Kind::result, .value = std::move(value)};
}

// if (q_idx < kv_idx - 3) { return -INFINITY; }
// return f(score) * slopes[h];
SnippetTree score_tree() {
  const Expression early =
      apply(Op::less, {variable("q_idx"), apply(Op::subtract, {variable("kv_idx"), integer(3)})});
  Statement lambda{.kind = Statement::Kind::lambda,
                   .name = "f",
                   .value = apply(Op::multiply, {variable("x", Type::floating), floating(0.5)}),
                   .parameters = {variable("x", Type::floating)}};
  Statement branch{.kind = Statement::Kind::branch, .value = early};
  branch.body.push_back(result(floating(-kInfinity)));
  Expression call{.op = Op::call,
                  .type = Type::floating,
                  .name = "f",
                  .operands = {variable("score", Type::floating)}};
  return {.kind = SnippetKind::score_mod,
          .statements = {lambda, branch,
                         result(apply(Op::multiply,
                                      {call, read("slopes", Type::floating, {variable("h")})}))}};
}

FuzzCase full_case() {
  FuzzCase fuzz_case;
  fuzz_case.spec = {
      .dtype = DType::f16,
      .head_dim = 32,
      .buffers = {{"slopes", {.dtype = DType::f32, .shape = {NamedDim::num_q_heads}}},
                  {"table", {.dtype = DType::f32, .shape = {FreeDim{}, 2, FreeDim{}}}}},
      .scalars = {{"window", {.dtype = DType::i32, .default_value = 7}}}};
  fuzz_case.score_mod = score_tree();
  fuzz_case.shape = {.batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 17, .kv_len = 33};
  fuzz_case.shape.q_offset = -5;
  fuzz_case.one_kv_head_for_all = true;
  fuzz_case.decode = fuzz_case.split = fuzz_case.batch_invariant = true;
  fuzz_case.splits = 16;
  fuzz_case.null_extents = {{"table", {7, 9}}};
  fuzz_case.scale = 0.1;
  fuzz_case.scalars = {{"window", 3}};
  fuzz_case.k = {.row_padding = 3, .offset = 1};
  fuzz_case.seed = 0xfedcba9876543210;
  fuzz_case.q_factor = 1.0 / 3;
  fuzz_case.run_seed = 12;
  print_snippets(fuzz_case);
  return fuzz_case;
}

TEST_CASE("fuzz: a tree prints as a snippet's text") {
  CHECK(to_text(score_tree()) ==
        "auto f = [=](float x) { return x * 0.5; };\n"
        "if (q_idx < kv_idx - 3) {\n"
        "  return -INFINITY;\n"
        "}\n"
        "return f(score) * slopes[h];");
  const Expression x = variable("x");
  const Expression sum = apply(Op::add, {x, integer(1)});
  CHECK(to_text(apply(Op::multiply, {sum, sum})) == "(x + 1) * (x + 1)");
  CHECK(to_text(apply(Op::subtract, {sum, sum})) == "x + 1 - (x + 1)");
  CHECK(to_text(apply(Op::negate, {integer(-5)})) == "-(-5)");
  CHECK(to_text(apply(Op::bit_and, {sum, x})) == "x + 1 & x");
  CHECK(to_text(apply(Op::equal, {apply(Op::bit_and, {x, x}), x})) == "(x & x) == x");
  CHECK(to_text(floating(3)) == "3.0");
  CHECK(to_text(apply(Op::conditional, {apply(Op::less, {x, x}), x, sum})) ==
        "(x < x) ? x : x + 1");
}

TEST_CASE("fuzz: a case is the same after a round trip through JSON") {
  const FuzzCase fuzz_case = full_case();
  const std::string json = to_json(fuzz_case);
  const FuzzCase again = case_from_json(json);
  CHECK(to_json(again) == json);
  CHECK(again.spec == fuzz_case.spec);
  CHECK(again.score_mod == fuzz_case.score_mod);
  CHECK_FALSE(again.mask_mod);
  CHECK(again.shape == fuzz_case.shape);
  CHECK(again.seed == fuzz_case.seed);
  CHECK(again.q_factor == fuzz_case.q_factor);
  CHECK(again.scale == fuzz_case.scale);
  CHECK(again.scalars == fuzz_case.scalars);
  CHECK(again.null_extents == fuzz_case.null_extents);
  CHECK(again.k.row_padding == 3);
  CHECK(again.one_kv_head_for_all);
  CHECK(again.decode);
  CHECK(again.split);
  CHECK(again.splits == 16);
  CHECK(again.batch_invariant);
}

TEST_CASE("fuzz: what is no case is refused") {
  const auto message_of = [](const std::string& text) -> std::string {
    try {
      case_from_json(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string good = to_json(full_case());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t place = text.find(from);
    REQUIRE(place != std::string::npos);
    return text.replace(place, from.size(), to);
  };
  CHECK(message_of(good) == "accepted");
  CHECK(message_of("{}").find("it has no spec") != std::string::npos);
  CHECK(message_of("[1,").find("no JSON") != std::string::npos);
  CHECK(message_of(changed("\"q_factor\"", "\"q_fector\"")).find("q_fector") != std::string::npos);
  CHECK(message_of(changed("\"q_len\": 17", "\"q_len\": 0")).find("q_len") != std::string::npos);
  CHECK(message_of(changed("x * 0.5", "x * 0.25")).find("does not print") != std::string::npos);
  CHECK(message_of(changed("\"multiply\"", "\"multiplied\"")).find("multiplied") !=
        std::string::npos);
  const auto with_extents = [&](const std::string& name, const std::vector<std::int64_t>& extents) {
    FuzzCase fuzz_case = full_case();
    fuzz_case.null_extents = {{name, extents}};
    return message_of(to_json(fuzz_case));
  };
  CHECK(with_extents("other", {1, 1}).find("no buffer \"other\"") != std::string::npos);
  CHECK(with_extents("table", {1}).find("1 extent, but the buffer has 2") != std::string::npos);
  CHECK(with_extents("table", {1, 0}).find("is below 1") != std::string::npos);
}

}  // namespace
