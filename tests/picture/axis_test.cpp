#include "picture/axis.hpp"

#include "tests/support/catch.hpp"

using namespace tilewright::picture;

namespace {

std::string labels(std::int64_t length, std::int64_t block, std::int64_t offset,
                   std::int64_t max_ticks) {
  std::string text;
  for (const Tick& tick : axis_ticks(length, block, offset, max_ticks)) text += tick.label + " ";
  return text;
}

}  // namespace

TEST_CASE("axis: marks stand at edges of tiles, and at the end") {
  CHECK(labels(512, 128, 0, 9) == "0 128 256 384 512 ");
  CHECK(labels(1024, 128, 0, 5) == "0 256 512 768 1024 ");
  CHECK(labels(500, 48, 0, 7) == "0 96 192 288 384 500 ");
}

TEST_CASE("axis: a mark too near to the end gives way to it") {
  CHECK(labels(300, 128, 0, 9) == "0 128 300 ");
  CHECK(labels(340, 128, 0, 9) == "0 128 340 ");
  CHECK(labels(380, 128, 0, 9) == "0 128 256 380 ");
}

TEST_CASE("axis: an axis of less than a tile has marks too") {
  CHECK(labels(1, 128, 0, 2) == "0 1 ");
  CHECK(labels(64, 128, 0, 5) == "0 16 32 48 64 ");
}

TEST_CASE("axis: long ones count in units of 1024, offsets are part of the index") {
  CHECK(labels(131072, 128, 0, 5) == "0 32k 64k 96k 128k ");
  CHECK(labels(130000, 128, 0, 5) == "0 32k 64k 96k 130000 ");
  CHECK(labels(512, 256, 1000, 9) == "1000 1256 1512 ");
  CHECK(labels(16, 16, -16, 3) == "-16 -8 0 ");
}

TEST_CASE("axis: never more marks than there is room for") {
  for (std::int64_t length = 1; length < 3000; length += 7) {
    for (const std::int64_t room : {2, 3, 8}) {
      const auto ticks = axis_ticks(length, 48, 0, room);
      REQUIRE(static_cast<std::int64_t>(ticks.size()) <= room);
      REQUIRE(ticks.back().position == length);
    }
  }
}
