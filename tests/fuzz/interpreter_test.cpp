#include "fuzz/interpreter.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "runtime/api/tensor.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify::fuzz;
using Kind = Statement::Kind;

const Expression kQ = variable("q_idx");
const Expression kKv = variable("kv_idx");
const Expression kScore = variable("score", Type::floating);

Statement result(Expression value) {
  return {.kind = Kind::result, .value = std::move(value)};
}

// A call of 2 x 3 with offsets, a table of 4 integers and a scalar.
struct Call {
  Call() {
    for (int i = 0; i < 4; ++i) static_cast<int*>(table.data())[i] = 10 * i;
    spec.buffers["table"] = {.dtype = i32, .shape = {FreeDim{}}};
    spec.scalars["width"] = {.dtype = i32};
    inputs.buffers.emplace("table", table);
    inputs.scalars["width"] = 5;
    shape = {.batch = 1, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 2, .kv_len = 3};
    shape.q_offset = 7;
    shape.kv_offset = -1;
  }

  std::vector<double> scores(std::vector<Statement> statements,
                             std::vector<double> scores = {0.5, -1, 2}) const {
    const CallValues values(spec, shape, inputs);
    const Interpreter<double> interpreter(
        {.kind = SnippetKind::score_mod, .statements = std::move(statements)}, values);
    std::vector<double> modified(scores.size());
    interpreter.modify({.b = 0, .h = 3, .row = 1}, scores.data(), modified.data());
    return modified;
  }

  std::vector<int> kept(std::vector<Statement> statements) const {
    const CallValues values(spec, shape, inputs);
    const Interpreter<float> interpreter(
        {.kind = SnippetKind::mask_mod, .statements = std::move(statements)}, values);
    std::vector<unsigned char> keep(3);
    interpreter.keep({.b = 0, .h = 3, .row = 1}, keep.data());
    return {keep.begin(), keep.end()};
  }

  Tensor table = Tensor::zeros(i32, {4});
  Spec spec{.dtype = f32, .head_dim = 16};
  SnippetInputs inputs;
  Shape shape;
};

TEST_CASE("fuzz: the interpreter knows indices, lengths, scalars and buffers") {
  const Call call;
  const auto sum = [](Expression a, Expression b) {
    return apply(Op::add, {std::move(a), std::move(b)});
  };
  // q_idx is 8, kv_idx -1, 0, 1; h 3 of group 2.
  CHECK(call.scores({result(sum(kScore, kQ))}) == std::vector<double>{8.5, 7, 10});
  CHECK(call.scores({result(sum(kScore, kKv))}) == std::vector<double>{-0.5, -1, 3});
  CHECK(call.scores({result(sum(kScore, variable("h_kv")))}) == std::vector<double>{1.5, 0, 3});
  CHECK(call.scores({result(sum(kScore, variable("width")))}) == std::vector<double>{5.5, 4, 7});
  const Expression clamped = read("table", Type::integer, {apply(Op::multiply, {kKv, integer(9)})});
  CHECK(call.scores({result(sum(kScore, clamped))}) == std::vector<double>{0.5, -1, 32});
  const Expression size{.op = Op::size, .name = "table"};
  CHECK(call.scores({result(sum(kScore, size))}) == std::vector<double>{4.5, 3, 6});
}

TEST_CASE("fuzz: the interpreter's integers are C++'s") {
  const Call call;
  const auto of = [&](Op op, std::int64_t a, std::int64_t b) {
    const Expression zero = apply(Op::multiply, {floating(0), kScore});
    return call.scores({result(apply(Op::add, {zero, apply(op, {integer(a), integer(b)})}))})[0];
  };
  CHECK(of(Op::divide, -7, 2) == -3);
  CHECK(of(Op::remainder, -7, 2) == -1);
  CHECK(of(Op::shift_right, -7, 1) == -4);
  CHECK(of(Op::bit_and, -7, 12) == 8);
  CHECK(of(Op::minimum, -7, 2) == -7);
  for (const auto& [op, a, b] :
       std::vector<std::tuple<Op, std::int64_t, std::int64_t>>{{Op::divide, 1, 0},
                                                               {Op::remainder, 1, 0},
                                                               {Op::add, 2147483647, 1},
                                                               {Op::multiply, 65536, 32768},
                                                               {Op::shift_left, 1, 32}}) {
    CHECK_THROWS_AS(of(op, a, b), Error);
  }
}

TEST_CASE("fuzz: the interpreter's floor_div, floor_mod and sign are Python's") {
  const Call call;
  const auto of = [&](Op op, Expression a, Expression b) {
    return call.scores({result(apply(op, {std::move(a), std::move(b)}))})[0];
  };
  CHECK(of(Op::floor_quotient, kScore, integer(-7)) == -1);
  CHECK(of(Op::floor_quotient, floating(-7.5), floating(2)) == -4);
  CHECK(of(Op::floor_remainder, floating(-7.5), floating(2)) == 0.5);
  const Expression zero = apply(Op::multiply, {floating(0), kScore});
  const auto of_integers = [&](Op op, std::int64_t a, std::int64_t b) {
    return of(Op::add, zero, apply(op, {integer(a), integer(b)}));
  };
  CHECK(of_integers(Op::floor_quotient, -7, 2) == -4);
  CHECK(of_integers(Op::floor_remainder, -7, 2) == 1);
  CHECK(of_integers(Op::floor_remainder, 7, -2) == -1);
  CHECK_THROWS_AS(of_integers(Op::floor_quotient, 1, 0), Error);
  CHECK(call.scores({result(apply(Op::sign, {kScore}))}) == std::vector<double>{1, -1, 1});
}

TEST_CASE("fuzz: the interpreter reads the nearest cell at an index of any type") {
  const Call call;
  const Expression zero = apply(Op::multiply, {floating(0), kScore});
  const auto at = [&](Expression index) {
    const Expression cell = read("table", Type::integer, {std::move(index)});
    return call.scores({result(apply(Op::add, {zero, cell}))})[0];
  };
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(at(floating(2.9)) == 20);
  CHECK(at(floating(-0.5)) == 0);
  CHECK(at(floating(infinity)) == 30);
  CHECK(at(floating(-infinity)) == 0);
  CHECK(at(apply(Op::log2, {floating(-1)})) == 0);
  CHECK(at(floating(1e30)) == 30);
  CHECK(at(apply(Op::times_2_to_32, {integer(-5)})) == 0);
  CHECK(at(apply(Op::times_2_to_32, {integer(1)})) == 30);
  CHECK(at(apply(Op::to_unsigned, {integer(-1)})) == 30);
  CHECK(at(apply(Op::to_wide_unsigned, {integer(-1)})) == 30);
  CHECK(at(truth(true)) == 10);
}

TEST_CASE("fuzz: the interpreter runs statements") {
  const Call call;
  const Expression early = apply(Op::less, {kKv, integer(0)});
  Statement branch{.kind = Kind::branch, .value = early};
  branch.body.push_back({.kind = Kind::assign, .name = "x", .value = floating(9)});
  branch.otherwise.push_back(result(floating(-std::numeric_limits<double>::infinity())));
  const Statement declare{.kind = Kind::declare, .name = "x", .value = kScore};
  const auto scores = call.scores({declare, branch, result(variable("x", Type::floating))});
  CHECK(scores[0] == 9);
  CHECK((std::isinf(scores[1]) && scores[1] < 0));

  // A lambda captures the value that x has where the lambda stands.
  const Statement lambda{
      .kind = Kind::lambda,
      .name = "f",
      .value = apply(Op::add, {variable("x", Type::floating), variable("y", Type::floating)}),
      .parameters = {variable("y", Type::floating)}};
  const Statement assign{.kind = Kind::assign, .name = "x", .value = floating(100)};
  const Expression called{
      .op = Op::call, .type = Type::floating, .name = "f", .operands = {integer(2)}};
  CHECK(call.scores({declare, lambda, assign, result(called)}) == std::vector<double>{2.5, 1, 4});

  // && leaves its second operand alone.
  const Expression guarded =
      apply(Op::logical_and, {apply(Op::not_equal, {kKv, integer(0)}),
                              apply(Op::less, {apply(Op::divide, {integer(1), kKv}), integer(1)})});
  CHECK(call.kept({result(guarded)}) == std::vector<int>{1, 0, 0});
}

TEST_CASE("fuzz: the interpreter refuses names that are not there") {
  const Call call;
  CHECK_THROWS_AS(call.scores({result(variable("y", Type::floating))}), Error);
  CHECK_THROWS_AS(call.kept({result(variable("score", Type::floating))}), Error);
  CHECK_THROWS_AS(call.scores({result(variable("q_idx", Type::floating))}), Error);
}

}  // namespace
