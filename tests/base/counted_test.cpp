#include "base/counted.hpp"

#include "tests/support/catch.hpp"

using namespace tilewright;

TEST_CASE("counted: one is a singular, every other number a plural") {
  CHECK(counted(1, "part") == "1 part");
  CHECK(counted(0, "part") == "0 parts");
  CHECK(counted(32, "q tile") == "32 q tiles");
}
