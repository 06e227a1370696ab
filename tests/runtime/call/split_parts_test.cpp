#include "runtime/call/split_parts.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/refusal.hpp"

using namespace tilewright;

TEST_CASE("splits: a wish is met as far as there is room") {
  CHECK(blocks_for_splits(0, 8, 264) == 264);  // no wish
  CHECK(blocks_for_splits(2, 8, 264) == 16);
  CHECK(blocks_for_splits(40, 8, 264) == 264);
  CHECK(blocks_for_splits(std::int64_t{1} << 62, 8, 264) == 264);
  CHECK(blocks_for_splits(2, 0, 264) == 1);  // a launch has a block of threads
  CHECK(parts_for_splits(0, 4) == 4);
  CHECK(parts_for_splits(1, 4) == 1);
  CHECK(parts_for_splits(16, 4) == 4);
}

TEST_CASE("splits: fewer than 0 are refused") {
  require_splits(0);
  CHECK(test::refusal([] { require_splits(-1); }) == "splits is -1");
}
