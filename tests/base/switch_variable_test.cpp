#include "base/switch_variable.hpp"

#include <cstdlib>

#include "tests/support/catch.hpp"

using namespace tilewright;

TEST_CASE("switch variable: on, off, unset or empty, and nothing else") {
  const char* const name = "TILEWRIGHT_TEST_SWITCH";
  const auto said = [&](const char* value) {
    ::setenv(name, value, 1);
    return switch_variable(name, "set it to 0 or 1");
  };
  CHECK(said("1") == true);
  CHECK(said("on") == true);
  CHECK(said("0") == false);
  CHECK(said("off") == false);
  CHECK_THROWS_WITH(said("perhaps"),
                    Catch::Matchers::ContainsSubstring("TILEWRIGHT_TEST_SWITCH is \"perhaps\"") &&
                        Catch::Matchers::ContainsSubstring("set it to 0 or 1"));
  CHECK_THROWS(said("ON"));
  CHECK_FALSE(said("").has_value());
  ::unsetenv(name);
  CHECK_FALSE(switch_variable(name, "").has_value());
}
