#include "generator/spec/number_range.hpp"

#include <limits>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/spec/spec_json.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("number range: floats are held from the least to the greatest") {
  CHECK(f32_range("3.4028235e38") == FloatRange::holds);
  CHECK(f32_range("3.4028236e38") == FloatRange::overflows);
  CHECK(f32_range("1e39") == FloatRange::overflows);
  CHECK(f32_range("1.5e-45") == FloatRange::holds);
  CHECK(f32_range("1e-46") == FloatRange::underflows);
  CHECK(f32_range("0.0e-999") == FloatRange::holds);
  CHECK(f32_range("0e999") == FloatRange::holds);
  CHECK(f32_range("1.8p127", true) == FloatRange::holds);
  CHECK(f32_range("1p128", true) == FloatRange::overflows);
  CHECK(f32_range("1p-149", true) == FloatRange::holds);
  CHECK(f32_range("1p-151", true) == FloatRange::underflows);
  CHECK(f64_range("1e39") == FloatRange::holds);
  CHECK(f64_range("1e400") == FloatRange::overflows);
  CHECK(f64_range("1e-400") == FloatRange::underflows);
  CHECK(f64_range(std::string(400, '9')) == FloatRange::overflows);
  CHECK(f32_range(1e39) == FloatRange::overflows);
  CHECK(f32_range(-1e-50) == FloatRange::underflows);
  CHECK(f32_range(std::numeric_limits<double>::infinity()) == FloatRange::holds);
}

TEST_CASE("number range: a seed is exactly a whole number up to 2^53, however it is written") {
  for (const char* const held :
       {"0", "-0.0", "0e999999999999", "9007199254740992", "-7", "1e3", "12.5e1",
        "9007199254740992.000", "90071992547409920e-1", "0.0015e+4"}) {
    CAPTURE(held);
    CHECK(is_exact_seed(held));
  }
  for (const char* const refused :
       {"0.5", "-1.5", "9007199254740993", "-9007199254740993", "9007199254740992.5",
        "9007199254740991.5", "4503599627370496.25", "1e16", "1e400", "1e-1", "1e999999999999",
        "1e-999999999999", "99999999999999999999", "0.0015e3"}) {
    CAPTURE(refused);
    CHECK_FALSE(is_exact_seed(refused));
  }
}

TEST_CASE("number range: a snippet's number that no type holds is refused at its place") {
  const char* const number =
      GENERATE("18446744073709551620", "18446744073709551616u", "9223372036854775808",
               "18446744073709551615", "0x10000000000000000", "0x1'0000'0000'0000'0000ull",
               "02000000000000000000000",
               "0b10000000000000000000000000000000000000000000000000000000000000000",
               "99'999'999'999'999'999'999", "1e400", "1e39f", "1e39", "1e-400", "1e-46f",
               "1'0e400", "0x1p128", "0x1p-151f", "1000000000000000000000000000000000000000.0");
  const SnippetKind kind = GENERATE(SnippetKind::score_mod, SnippetKind::mask_mod);
  CAPTURE(number);
  try {
    check_snippet(kind, fmt::format("kv_idx < {}", number));
    FAIL_CHECK("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::snippet);
    CHECK_THAT(error.message(), ContainsSubstring(" hold"));
    CHECK_THAT(error.hint(), ContainsSubstring("INFINITY"));
    REQUIRE(error.place());
    CHECK(error.place()->column == 10);
  }
}

TEST_CASE("number range: a snippet's number that a type holds passes") {
  const char* const number =
      GENERATE("9223372036854775807", "18446744073709551615u", "0xFFFFFFFFFFFFFFFF", "3000000000",
               "01777777777777777777777", "3.4028235e38", "1e-45", "0e999", "0x1.fffffep127");
  CAPTURE(number);
  CHECK_NOTHROW(check_snippet(SnippetKind::mask_mod, fmt::format("kv_idx < {}", number)));
}

TEST_CASE("number range: a spec's number that no type holds is refused at its place") {
  struct Case {
    const char* field;
    const char* message;
  };
  const Case refused = GENERATE(
      Case{R"("scale": 1e400)", "no double can hold"},
      Case{R"("scale": -1e400)", "no double can hold"},
      Case{R"("scale": 1e-400)", "would make it 0"}, Case{R"("scale": 1e-60)", "not 0 in f32"},
      Case{R"("scale": 1e39)", "be a finite number"},
      Case{R"("scalars": {"w": {"dtype": "f32", "default": 1e-60}})", "not 0 in f32"},
      Case{R"("scalars": {"w": {"dtype": "i32", "default": 18446744073709551616}})",
           "whole number"},
      Case{R"("buffers": {"w": {"dtype": "f32", "shape": [4], "range": [1e-60, 1]}})",
           "not 0 in f32"},
      Case{R"("buffers": {"w": {"dtype": "f32", "shape": [18446744073709551616]}})",
           "fits into 64 bits"},
      Case{R"("block": [128, 36893488147419103232])", "fits into 64 bits"});
  CAPTURE(refused.field);
  try {
    spec_from_json(fmt::format("{{\"dtype\": \"f32\", \"head_dim\": 64,\n{}}}", refused.field),
                   "s.json");
    FAIL_CHECK("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::spec);
    CHECK_THAT(error.message(), ContainsSubstring(refused.message));
    REQUIRE(error.place());
    CHECK(error.place()->line == 2);
    CHECK(error.place()->column > 8);
  }
}
