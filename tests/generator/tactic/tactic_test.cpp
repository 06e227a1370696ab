#include "generator/tactic/tactic.hpp"

#include "base/error.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

Spec with_block(std::int64_t rows, std::int64_t head_dim = 64) {
  Spec spec{.dtype = f32, .head_dim = head_dim};
  spec.block = {rows, 128};
  return spec;
}

std::int64_t q_tile(std::int64_t block_rows) {
  return choose_tactic(with_block(block_rows), Target::host_cpu()).parameters().at("q_tile");
}

}  // namespace

TEST_CASE("tactic: a q tile divides the rows of a block") {
  CHECK(q_tile(128) == 64);
  CHECK(q_tile(192) == 64);
  CHECK(q_tile(48) == 48);
  CHECK(q_tile(96) == 48);
  CHECK(q_tile(32) == 32);
  CHECK(q_tile(80) == 16);
  for (std::int64_t rows = 16; rows <= 256; rows += 16) CHECK(rows % q_tile(rows) == 0);
}

TEST_CASE("tactic: the target fixes the width of a vector") {
  const auto bytes = [](const char* target) {
    return choose_tactic(with_block(128), Target::parse(target)).parameters().at("vector_bytes");
  };
  CHECK(bytes("cpu-x86-64-v3") == 32);
  CHECK(bytes("cpu-x86-64-v4") == 64);
}

TEST_CASE("tactic: a tactic describes itself") {
  CHECK(choose_tactic(with_block(128), Target::parse("cpu-x86-64-v4")).describe() ==
        "cpu q_tile=64 kv_tile=128 vector_bytes=64");
  CHECK_THAT(choose_tactic(with_block(128, 256), Target::parse("cpu-x86-64-v4")).describe(),
             ContainsSubstring("kv_tile=64"));
}

TEST_CASE("tactic: a forced tactic keeps what it leaves open") {
  Spec spec = with_block(128);
  spec.tactic = TacticSpec{"cpu", {{"q_tile", 32}}};
  CHECK(choose_tactic(spec, Target::parse("cpu-x86-64-v3")).describe() ==
        "cpu q_tile=32 kv_tile=128 vector_bytes=32");
}

TEST_CASE("tactic: a forced tactic that does not fit is an error that says why") {
  const auto report = [](const TacticSpec& tactic) {
    Spec spec = with_block(128);
    spec.tactic = tactic;
    try {
      choose_tactic(spec, Target::host_cpu());
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::spec);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(report({"hopper", {}}),
             ContainsSubstring("\"hopper\"") && ContainsSubstring("\"cpu\""));
  CHECK_THAT(report({"cpu", {{"q_tiles", 32}}}), ContainsSubstring("did you mean \"q_tile\"?"));
  CHECK_THAT(report({"cpu", {{"q_tile", 48}}}),
             ContainsSubstring("does not divide block[0] = 128"));
  CHECK_THAT(report({"cpu", {{"q_tile", 20}}}), ContainsSubstring("q_tile is 20"));
  CHECK_THAT(report({"cpu", {{"kv_tile", 512}}}), ContainsSubstring("kv_tile is 512"));
  CHECK_THAT(report({"cpu", {{"vector_bytes", 16}}}), ContainsSubstring("vector_bytes is 16"));
}
