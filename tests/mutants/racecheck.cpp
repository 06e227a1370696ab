#include "tests/mutants/racecheck.hpp"

#include <cstddef>
#include <cstdlib>

#include <fmt/format.h>

namespace tilewright::mutants {
namespace {

constexpr std::string_view kHazard = " hazard detected at ";
constexpr std::string_view kThread = " Thread (";
constexpr int kLanes = 32;

// "RAW" of "========= Error: Potential RAW hazard detected at __shared__ 0x38490 in block (5,0,0)
// :"
std::string kind_before(std::string_view report, std::size_t hazard) {
  const std::size_t space = report.rfind(' ', hazard - 1);
  return std::string(report.substr(space + 1, hazard - space - 1));
}

// The numbers of the threads that a hazard names: "=========     Read Thread (191,0,0) at ...".
std::vector<int> threads_of(std::string_view hazard) {
  std::vector<int> threads;
  for (std::size_t at = hazard.find(kThread); at != std::string_view::npos;
       at = hazard.find(kThread, at + 1)) {
    threads.push_back(std::atoi(std::string(hazard.substr(at + kThread.size(), 8)).c_str()));
  }
  return threads;
}

}  // namespace

std::vector<std::string> options_for_lanes() {
  // All of them, since those between warps would use up any limit; no stacks of the host's.
  return {"--racecheck-report", "hazard", "--print-limit", "1000000", "--show-backtrace", "no"};
}

std::string lanes_that_race(std::string_view report) {
  for (std::size_t begin = report.find(kHazard); begin != std::string_view::npos;) {
    const std::size_t next = report.find(kHazard, begin + 1);
    const std::vector<int> threads = threads_of(report.substr(begin, next - begin));
    if (threads.size() >= 2 && threads[0] / kLanes == threads[1] / kLanes) {
      return fmt::format("racecheck reports a {} hazard between threads {} and {}, lanes of a warp",
                         kind_before(report, begin), threads[0], threads[1]);
    }
    begin = next;
  }
  return "";
}

}  // namespace tilewright::mutants
