#include "generator/snippet/size_calls.hpp"

#include <string>

#include "base/error.hpp"
#include "generator/spec/spec_json.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

Spec spec_with(std::string text) {
  Spec spec{.dtype = f32, .head_dim = 16, .score_mod = std::move(text)};
  spec.buffers["bias"] = {f32, {FreeDim{}}};
  spec.buffers["pairs"] = {f32, {FreeDim{}, FreeDim{}}};
  spec.buffers["gain"] = {f32, {}};
  return spec;
}

std::string report(const std::string& text) {
  try {
    validate(spec_with(text));
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("size calls: a number that is no dimension is refused at its place") {
  struct Case {
    const char* text;
    const char* column;
    const char* message;
  };
  const Case cases[] = {
      {"score + bias.size(1)", ":1:19", "size(1) of buffer \"bias\", which has 1 dimension"},
      {"score + bias.size(100000000)", ":1:19", "size(100000000)"},
      {"score + bias.size(-1)", ":1:19", "size(-1)"},
      {"score + pairs.size( (1 + 1) )", ":1:21", "size(2) of buffer \"pairs\", which has 2"},
      {"score + pairs.size(3 - 2 * 2)", ":1:20", "size(-1)"},
      {"score + pairs . size(0x2u)", ":1:22", "size(2)"},
      {"score + (pairs).size(2'000)", ":1:22", "size(2000)"},
      {"score + bias.size(1.9f)", ":1:19", "size(1)"},
      {"score + pairs.size(2 * true)", ":1:20", "size(2)"},
      {"score + bias.size(18446744073709551615ull)", ":1:19", "size(1844674407370955"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK_THAT(report(c.text), ContainsSubstring("error[snippet]") && ContainsSubstring(c.column) &&
                                   ContainsSubstring(c.message) && ContainsSubstring("hint: "));
  }
}

TEST_CASE("size calls: dimensions that exist, and what is known at run time only, are accepted") {
  for (const char* text :
       {"score + bias.size(0)", "score + pairs.size(1)", "score + pairs.size(+1)",
        "score + pairs.size(2 - 1)", "score + pairs.size(h)", "score + pairs.size(h + 100)",
        "score + gain"}) {
    CAPTURE(text);
    CHECK(report(text) == "accepted");
  }
}

TEST_CASE("size calls: a buffer without dimensions is read by its name alone") {
  for (const char* text : {"score + gain[0]", "score + gain(0)", "score + gain.size(0)"}) {
    CAPTURE(text);
    CHECK_THAT(report(text), ContainsSubstring("\"gain\" has no dimensions") &&
                                 ContainsSubstring(":1:13") && ContainsSubstring("write gain"));
  }
}

TEST_CASE("size calls: a spec in JSON is checked too, and names the snippet's place") {
  const char* const json = R"json({"dtype": "f32", "head_dim": 16, "mask_mod": "kv_idx < x.size(2)",
                                   "buffers": {"x": {"dtype": "i32", "shape": [4, 4]}}})json";
  try {
    spec_from_json(json, "my.json");
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK_THAT(std::string(error.what()),
               ContainsSubstring("mask_mod:1:17") && ContainsSubstring("my.json"));
  }
}
