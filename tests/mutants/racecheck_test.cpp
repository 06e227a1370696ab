#include "tests/mutants/racecheck.hpp"

#include <string>

#include <fmt/format.h>

#include "tests/support/catch.hpp"

using namespace tilewright::mutants;

namespace {

std::string hazard(const char* kind, int first, int second) {
  return fmt::format(
      "========= Error: Potential {} hazard detected at __shared__ 0x38490 in block (5,0,0) :\n"
      "=========     Read Thread ({},0,0) at tilewright_forward+0x1460\n"
      "=========     Write Thread ({},0,0) at tilewright_forward+0x9800\n"
      "=========     Current Value : 129, Incoming Value : 129\n"
      "========= \n",
      kind, first, second);
}

}  // namespace

TEST_CASE("racecheck: of its hazards those between lanes of a warp count") {
  CHECK(lanes_that_race("") == "");
  CHECK(lanes_that_race("========= RACECHECK SUMMARY: 0 hazards displayed\n") == "");
  const std::string between_warps = hazard("WAR", 191, 0) + hazard("WAR", 287, 31);
  CHECK(lanes_that_race(between_warps) == "");
  CHECK(lanes_that_race(between_warps + hazard("RAW", 32, 35) + between_warps) ==
        "racecheck reports a RAW hazard between threads 32 and 35, lanes of a warp");
  CHECK(lanes_that_race(hazard("WAR", 31, 32)) == "");
}
