#include "generator/spec/spec.hpp"

#include <functional>
#include <limits>
#include <string>

#include "base/error.hpp"
#include "generator/spec/dtype.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

// What validate says about the least spec after a change.
std::string fault(const std::function<void(Spec&)>& change) {
  Spec spec = {.dtype = bf16, .head_dim = 64};
  REQUIRE_NOTHROW(validate(spec));
  change(spec);
  try {
    validate(spec);
  } catch (const Error& error) {
    CHECK_FALSE(error.code() == ErrorCode::snippet);
    CHECK_FALSE(error.place());
    return error.message();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("validate: fields of the struct are checked as the JSON's are, and named") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(fault([](Spec& s) { s.dtype = i32; }) ==
        "dtype is \"i32\", but must be \"f32\", \"f16\", \"bf16\" or \"f8e4m3\"");
  CHECK(fault([](Spec& s) { s.head_dim = 0; }) ==
        "head_dim is 0, but must be a number from 8 to 256");
  CHECK_THAT(fault([](Spec& s) { s.head_dim = 7; }), ContainsSubstring("head_dim is 7"));
  CHECK_THAT(fault([](Spec& s) { s.v_head_dim = 257; }), ContainsSubstring("v_head_dim is 257"));
  CHECK_THAT(fault([](Spec& s) { s.kv_dtype = u8; }), ContainsSubstring("kv_dtype is \"u8\""));
  CHECK_THAT(fault([](Spec& s) { s.out_dtype = i64; }), ContainsSubstring("out_dtype is \"i64\""));
  CHECK_THAT(fault([&](Spec& s) { s.scale = nan; }), ContainsSubstring("scale is nan"));
  CHECK_THAT(fault([&](Spec& s) { s.scale = infinity; }), ContainsSubstring("scale is inf"));
  CHECK_THAT(fault([](Spec& s) { s.scale = -4e38; }), ContainsSubstring("scale is -4e+38"));
  CHECK(fault([](Spec& s) { s.scale = 0; }) == "accepted");
  CHECK_THAT(fault([](Spec& s) { s.block = {64, 40}; }), ContainsSubstring("block[1] is 40"));
  CHECK_THAT(fault([](Spec& s) { s.block = {272, 64}; }), ContainsSubstring("block[0] is 272"));
  CHECK_THAT(fault([](Spec& s) { s.outputs.out = false; }), ContainsSubstring("outputs lacks"));
  CHECK_THAT(fault([](Spec& s) { s.buffers["q_idx"] = {.shape = {1}}; }),
             ContainsSubstring("\"q_idx\" is what every snippet calls one of its arguments"));
  CHECK(fault([](Spec& s) { s.buffers["x"] = {}; }) == "accepted");
  CHECK_THAT(fault([](Spec& s) {
               s.buffers["x"] = {.shape = {1, 1, 1, 1, 1, 1}};
             }),
             ContainsSubstring("6 dimensions"));
  CHECK_THAT(fault([](Spec& s) { s.buffers["x"] = {.shape = {-1}}; }),
             ContainsSubstring("buffers.x.shape[0] is -1"));
  CHECK_THAT(fault([&](Spec& s) {
               s.buffers["x"] = {.shape = {1}, .range = {{nan, 1}}};
             }),
             ContainsSubstring("buffers.x.range[0] is nan"));
  CHECK_THAT(fault([](Spec& s) {
               s.buffers["x"] = {.dtype = boolean, .shape = {1}, .range = {{0, 0.5}}};
             }),
             ContainsSubstring("must be a whole number (bool)"));
  CHECK_THAT(fault([](Spec& s) { s.scalars["x"] = {.dtype = f16}; }),
             ContainsSubstring("scalars.x.dtype is \"f16\""));
  CHECK_THAT(fault([&](Spec& s) { s.scalars["x"] = {.default_value = infinity}; }),
             ContainsSubstring("scalars.x.default is inf"));
  CHECK_THAT(fault([](Spec& s) { s.tactic = TacticSpec{}; }), ContainsSubstring("tactic.name"));
  CHECK_THAT(fault([](Spec& s) {
               s.tactic = TacticSpec{"cpu", {{"name", 1}}};
             }),
             ContainsSubstring("\"name\" is no parameter's name"));
  CHECK_THAT(fault([](Spec& s) { s.name = "a\x01"; }), ContainsSubstring("one line of UTF-8"));
  CHECK_THAT(fault([](Spec& s) { s.name = "\xFF"; }), ContainsSubstring("one line of UTF-8"));
}

TEST_CASE("validate: numbers that no enumerator has are refused") {
  const auto unknown = []<typename Enum>(Enum) { return static_cast<Enum>(99); };
  CHECK(fault([&](Spec& s) { s.layout = unknown(s.layout); }) ==
        "layout is 99, but must be \"bhsd\", \"bshd\" or \"packed\"");
  CHECK_THAT(fault([&](Spec& s) { s.kv_layout = unknown(Layout{}); }),
             ContainsSubstring("kv_layout is 99"));
  CHECK_THAT(fault([&](Spec& s) { s.dtype = unknown(f32); }), ContainsSubstring("dtype is 99"));
  CHECK_THAT(fault([&](Spec& s) { s.kv_dtype = unknown(f32); }),
             ContainsSubstring("kv_dtype is 99"));
  const auto buffer_fault = [](const BufferSpec& buffer) {
    return fault([&](Spec& s) { s.buffers["x"] = buffer; });
  };
  CHECK_THAT(buffer_fault({.dtype = unknown(f32), .shape = {1}}),
             ContainsSubstring("buffers.x.dtype is 99"));
  CHECK_THAT(buffer_fault({.shape = {unknown(NamedDim{})}}),
             ContainsSubstring("buffers.x.shape[0] is 99"));
  CHECK_THAT(buffer_fault({.shape = {1}, .bounds = unknown(Bounds{})}),
             ContainsSubstring("buffers.x.bounds is 99"));
  CHECK_THAT(fault([&](Spec& s) { s.scalars["x"] = {.dtype = unknown(f32)}; }),
             ContainsSubstring("scalars.x.dtype is 99"));
}

TEST_CASE("validate: snippets are checked too") {
  Spec spec = {.dtype = bf16, .head_dim = 64};
  spec.score_mod = "score +* (";
  REQUIRE_THROWS_WITH(validate(spec), ContainsSubstring("error[snippet]: ( is never closed"));
  spec.score_mod = "score";
  spec.mask_mod = "#";
  REQUIRE_THROWS_WITH(validate(spec), ContainsSubstring("mask_mod:1:1"));
}

TEST_CASE("spec: the default scale is one over the root of head_dim") {
  Spec spec = {.dtype = f32, .head_dim = 64};
  CHECK(spec.softmax_scale() == 0.125);
  spec.scale = 3;
  CHECK(spec.softmax_scale() == 3);
}
