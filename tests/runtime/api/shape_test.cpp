#include "runtime/api/shape.hpp"

#include "base/error.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string refusal(const Shape& shape) {
  try {
    validate(shape);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::tensor);
    return error.what();
  }
  return "accepted";
}

constexpr Shape kGood = {.batch = 2, .num_q_heads = 6, .num_kv_heads = 2, .q_len = 1, .kv_len = 7};

Shape with(auto change) {
  Shape shape = kGood;
  change(shape);
  return shape;
}

}  // namespace

TEST_CASE("shape: what a kernel can run is accepted") {
  REQUIRE(refusal(kGood) == "accepted");
  REQUIRE(refusal(with([](Shape& s) { s.q_offset = -5; })) == "accepted");
  REQUIRE(refusal(with([](Shape& s) { s.kv_offset = 2147483647 - 1024 - 7; })) == "accepted");
}

TEST_CASE("shape: sizes below 1 and beyond an index are refused by name") {
  REQUIRE_THAT(refusal(with([](Shape& s) { s.q_len = 0; })), ContainsSubstring("q_len is 0"));
  REQUIRE_THAT(refusal(with([](Shape& s) { s.batch = -1; })), ContainsSubstring("batch is -1"));
  REQUIRE_THAT(refusal(with([](Shape& s) { s.kv_len = 2147483648; })),
               ContainsSubstring("kv_len is 2147483648"));
}

TEST_CASE("shape: heads that cannot be shared evenly are refused") {
  REQUIRE_THAT(refusal(with([](Shape& s) { s.num_kv_heads = 4; })),
               ContainsSubstring("6 query heads cannot be shared by 4 kv heads"));
}

TEST_CASE("shape: offsets that push an index out of 32 bits are refused") {
  REQUIRE_THAT(refusal(with([](Shape& s) { s.kv_offset = 2147483647 - 1024 - 6; })),
               ContainsSubstring("leaves the range"));
  REQUIRE_THAT(refusal(with([](Shape& s) { s.q_offset = -2147483648; })),
               ContainsSubstring("leaves the range"));
}

TEST_CASE("shape: the description names offsets only where there are any") {
  REQUIRE(kGood.describe() == "batch 2, heads 6/2, q_len 1, kv_len 7");
  REQUIRE_THAT(with([](Shape& s) { s.q_offset = 3; }).describe(), ContainsSubstring("q_offset 3"));
}
