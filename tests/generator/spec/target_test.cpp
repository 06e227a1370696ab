#include "generator/spec/target.hpp"

#include <string>

#include "base/error.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

Error refusal(const std::string& name) {
  try {
    Target::parse(name);
  } catch (const Error& error) {
    return error;
  }
  FAIL("accepted: " << name);
  return Error(ErrorCode::internal, "");
}

}  // namespace

TEST_CASE("target: every name parses to itself") {
  CHECK(Target::all_names().size() == 25);
  for (const std::string& name : Target::all_names()) {
    CAPTURE(name);
    const Target target = Target::parse(name);
    CHECK(target.name() == name);
    CHECK(target.is_cpu() == (target.sm() == 0));
  }
  CHECK(Target::parse("sm_80").sm() == 80);
  CHECK(Target::parse("sm_90a").sm() == 90);
  CHECK(Target::parse("sm_100f").sm() == 100);
  CHECK(Target::host_cpu() == Target::parse("cpu"));
}

TEST_CASE("target: what is too old says so") {
  const std::string name = GENERATE("sm_75", "sm_52", "sm_70");
  const Error error = refusal(name);
  CHECK(error.code() == ErrorCode::usage);
  CHECK(error.message() == "target \"" + name + "\" is too old");
  CHECK_THAT(error.hint(), ContainsSubstring("sm_80"));
}

TEST_CASE("target: an unknown name is answered with the nearest and the list") {
  const auto [name, hint] = GENERATE(
      table<std::string, std::string>({{"sm_90b", "did you mean \"sm_90\"?"},
                                       {"sm90a", "write \"sm_90a\""},
                                       {"cpu-x86-64-v2", "did you mean \"cpu-x86-64-v3\"?"},
                                       {"compute_90", "\"sm_90\""},
                                       {"cuda", "\"sm_90a\" for compute capability 9.0"},
                                       {"x86-64-v3", "cpu-x86-64-v3"},
                                       {"", ""},
                                       {"sm_85", "sm_8"},
                                       {"sm_99999999999", ""},
                                       {"sm_", ""},
                                       {"sm_-80", ""},
                                       {"SM_80", "\"sm_80\""}}));
  CAPTURE(name);
  const Error error = refusal(name);
  CHECK(error.code() == ErrorCode::usage);
  CHECK_THAT(error.message(), ContainsSubstring("\"" + name + "\" is not a target"));
  CHECK_THAT(error.hint(), ContainsSubstring(hint));
  REQUIRE(error.notes().size() == 1);
  CHECK_THAT(error.notes()[0], ContainsSubstring("\"sm_121f\""));
}
