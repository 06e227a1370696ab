#include "runtime/api/bindings.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

const Spec kSpec{
    .dtype = f32,
    .head_dim = 16,
    .buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}},
                {"table", {.dtype = i32, .shape = {NamedDim::batch, std::int64_t{5}}}}},
    .scalars = {{"cap", {.dtype = f32, .default_value = 50.0}}, {"window", {.dtype = i32}}}};

struct Memory {
  float slopes[4] = {};
  int table[2 * 5] = {};
};

SnippetInputs good_inputs(Memory& memory) {
  return {.buffers = {{"slopes", TensorView::contiguous(memory.slopes, f32, {4})},
                      {"table", TensorView::contiguous(memory.table, i32, {2, 5})}},
          .scalars = {{"window", 9}}};
}

std::string refusal(const auto& change, ErrorCode code) {
  Memory memory;
  SnippetInputs inputs = good_inputs(memory);
  change(inputs);
  try {
    const Bindings bindings(kSpec, inputs);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("bindings: buffers and scalars come in the order of their names, defaults filled in") {
  Memory memory;
  const Bindings bindings(kSpec, good_inputs(memory));
  REQUIRE(bindings.buffers().size() == 2);
  REQUIRE(bindings.buffers()[0].data == memory.slopes);
  REQUIRE(bindings.scalars() == std::vector<double>{50.0, 9.0});
}

TEST_CASE("bindings: what is missing, unknown or of another type is refused by name") {
  const auto tensor = ErrorCode::tensor;
  REQUIRE_THAT(
      refusal([](SnippetInputs& i) { i.buffers.erase("slopes"); }, tensor),
      ContainsSubstring("buffer \"slopes\" is missing") && ContainsSubstring("f32 [num_q_heads]"));
  REQUIRE_THAT(refusal([](SnippetInputs& i) { i.buffers["slope"] = i.buffers["slopes"]; }, tensor),
               ContainsSubstring("unknown buffer \"slope\"") &&
                   ContainsSubstring("did you mean \"slopes\"?"));
  REQUIRE_THAT(refusal([](SnippetInputs& i) { i.buffers["slopes"].dtype = bf16; }, tensor),
               ContainsSubstring("another dtype") && ContainsSubstring("given: bf16 [4]"));
  REQUIRE_THAT(refusal([](SnippetInputs& i) { i.buffers["table"].rank = 1; }, tensor),
               ContainsSubstring("another rank"));
  REQUIRE_THAT(refusal([](SnippetInputs& i) { i.buffers["table"].shape[1] = 4; }, tensor),
               ContainsSubstring("another size in dimension 1"));
  REQUIRE_THAT(refusal([](SnippetInputs& i) { i.buffers["table"].shape[0] = 0; }, tensor),
               ContainsSubstring("is empty"));
}

TEST_CASE("bindings: a dimension of more elements than an index counts is refused") {
  Spec spec{.dtype = f32, .head_dim = 16};
  spec.buffers["x"] = {u8, {FreeDim{}}};
  static unsigned char byte = 0;
  SnippetInputs inputs;
  inputs.buffers["x"] = TensorView::contiguous(&byte, u8, {1});
  inputs.buffers["x"].strides[0] = 0;
  inputs.buffers["x"].shape[0] = 2147483647;
  REQUIRE_NOTHROW(Bindings(spec, inputs));
  inputs.buffers["x"].shape[0] = 2147483648;
  REQUIRE_THROWS_WITH(Bindings(spec, inputs),
                      ContainsSubstring("has size 2147483648 in dimension 0") &&
                          ContainsSubstring("at most 2147483647"));
}

TEST_CASE("bindings: a buffer that no snippet can read is refused") {
  const auto tensor = ErrorCode::tensor;
  REQUIRE_THAT(refusal([](SnippetInputs& i) { i.buffers["slopes"].data = nullptr; }, tensor),
               ContainsSubstring("buffer \"slopes\" has no data"));
  const auto shift = [](SnippetInputs& i) {
    i.buffers["table"].data = static_cast<char*>(i.buffers["table"].data) + 1;
  };
  REQUIRE_THAT(refusal(shift, tensor), ContainsSubstring("multiple of its element's size"));
  REQUIRE_THAT(refusal([](SnippetInputs& i) { i.buffers["table"].rank = -1; }, tensor),
               ContainsSubstring("another rank"));
}

TEST_CASE("bindings: scalars are checked against their dtype") {
  const auto usage = ErrorCode::usage;
  REQUIRE_THAT(refusal([](SnippetInputs& i) { i.scalars.erase("window"); }, usage),
               ContainsSubstring("scalar \"window\" has no default") &&
                   ContainsSubstring(".scalars = {{\"window\", X}}") && !ContainsSubstring("--"));
  REQUIRE_THAT(refusal([](SnippetInputs& i) { i.scalars["window"] = 1.5; }, usage),
               ContainsSubstring("scalar \"window\" is 1.5"));
  REQUIRE_THAT(refusal([](SnippetInputs& i) { i.scalars["window"] = -std::nan(""); }, usage),
               ContainsSubstring("scalar \"window\" is nan"));
  REQUIRE_THAT(refusal([](SnippetInputs& i) { i.scalars["cap"] = 1e39; }, usage),
               ContainsSubstring("but must be a number that f32 holds"));
  REQUIRE_THAT(refusal([](SnippetInputs& i) { i.scalars["wndow"] = 1; }, usage),
               ContainsSubstring("did you mean \"window\"?"));
}

TEST_CASE("bindings: a seed is a whole number up to 2^53, and others any that they hold") {
  const Spec spec{.dtype = f32,
                  .head_dim = 16,
                  .dropout = "p",
                  .scalars = {{"seed", {.dtype = i64}}, {"p", {.dtype = f32}}}};
  const auto bind = [&](double seed, double p) {
    return Bindings(spec, {.scalars = {{"seed", seed}, {"p", p}}});
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double p : {0.5, nan, HUGE_VAL, -HUGE_VAL}) CHECK_NOTHROW(bind(0x1p53, p));
  CHECK_NOTHROW(bind(-0x1p53, 0));
  for (const double seed : {0x1p53 + 2, -0x1p53 - 2, 1e300, 0.5, nan, HUGE_VAL}) {
    REQUIRE_THROWS_WITH(bind(seed, 0),
                        ContainsSubstring("but must be a whole number from -9007199254740992 to") &&
                            ContainsSubstring("comes in a buffer"));
  }
}

TEST_CASE("bindings: named dimensions are checked against the call, and 1 broadcasts") {
  Memory memory;
  const Bindings bindings(kSpec, good_inputs(memory));
  const Shape shape{.batch = 2, .num_q_heads = 4, .num_kv_heads = 1, .q_len = 3, .kv_len = 3};
  REQUIRE_NOTHROW(bindings.check(kSpec, shape));

  Shape more_heads = shape;
  more_heads.num_q_heads = 8;
  REQUIRE_THROWS_WITH(
      bindings.check(kSpec, more_heads),
      ContainsSubstring("has size 4 in dimension 0, but num_q_heads of this call is 8"));

  SnippetInputs broadcast = good_inputs(memory);
  broadcast.buffers["slopes"].shape[0] = 1;
  REQUIRE_NOTHROW(Bindings(kSpec, broadcast).check(kSpec, more_heads));
}

TEST_CASE("bindings: those of another spec are refused, with what it declares") {
  Memory memory;
  const Shape shape{.batch = 2, .num_q_heads = 4, .q_len = 3, .kv_len = 3};
  const auto refusal_by = [&](const auto& change) -> std::string {
    Spec other = kSpec;
    change(other);
    try {
      Bindings(kSpec, good_inputs(memory)).check(other, shape);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::usage);
      return error.what();
    }
    return "accepted";
  };
  REQUIRE_THROWS_WITH(Bindings().check(kSpec, shape),
                      ContainsSubstring("bind() was not called: this spec reads buffers ") &&
                          ContainsSubstring(" and scalars ") &&
                          ContainsSubstring("; pass bindings"));
  REQUIRE_THAT(refusal_by([](Spec& s) { s.buffers["table"].dtype = f32; }),
               ContainsSubstring("hold buffer \"table\", i32 [batch, 5], where this one declares "
                                 "\"table\", f32 [batch, 5]"));
  REQUIRE_THAT(refusal_by([](Spec& s) { s.buffers["table"].shape[1] = std::int64_t{9}; }),
               ContainsSubstring("declares \"table\", i32 [batch, 9]"));
  REQUIRE_THAT(refusal_by([](Spec& s) {
                 auto renamed = s.buffers.extract("slopes");
                 renamed.key() = "slope";
                 s.buffers.insert(std::move(renamed));
               }),
               ContainsSubstring("\"slopes\"") && ContainsSubstring("\"slope\""));
  REQUIRE_THAT(refusal_by([](Spec& s) { s.scalars["cap"].dtype = i32; }),
               ContainsSubstring("hold scalar \"cap\", f32, where this one declares \"cap\", i32"));
  REQUIRE(refusal_by([](Spec& s) { s.scalars["cap"].default_value = 3; }) == "accepted");
}
