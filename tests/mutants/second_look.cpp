#include "tests/mutants/second_look.hpp"

#include <chrono>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "runtime/compile/process.hpp"
#include "tests/mutants/racecheck.hpp"
#include "tests/mutants/trial_report.hpp"

namespace tilewright::mutants {
namespace {

ProcessOptions options_of_child() {
  ProcessOptions options;
  options.timeout = std::chrono::minutes(10);
  options.output_limit = std::size_t{256} << 20;  // hazards are reported one by one
  return options;
}

// What slows threads down may show in a result here and nowhere else.
std::string wrong_result(const ProcessResult& result) {
  if (!result.succeeded()) return "";
  const Trial trial = read_trial(result.output);
  return trial.fate == Fate::killed ? "looked at again: " + trial.detail : "";
}

}  // namespace

SecondLook::SecondLook(std::string program, std::string device, std::string racecheck)
    : program_(std::move(program)), device_(std::move(device)), racecheck_(std::move(racecheck)) {}

std::string SecondLook::at(const Mutant& mutant) {
  const Way way = way_for(mutant);
  if (way == none || !is_silent_about_original(way)) return "";
  return look(way, mutant.mutation.id());
}

SecondLook::Way SecondLook::way_for(const Mutant& mutant) const {
  if (device_ == "cpu") return sanitized;
  if (racecheck_.empty()) return none;
  if (mutant.group == Group::hopper) return lanes;
  return mutant.mutation.may_race() ? hazards : none;
}

bool SecondLook::is_silent_about_original(Way way) {
  std::call_once(asked_[way], [&] {
    const std::string found = look(way, "original");
    is_silent_[way] = found.empty();
    if (!found.empty()) {
      fmt::print("no second look: of the templates as they are it says \"{}\"\n", found);
    }
  });
  return is_silent_[way];
}

std::string SecondLook::look(Way way, const std::string& id) const {
  return way == sanitized ? look_sanitized(id) : look_for_races(way, id);
}

std::string SecondLook::look_sanitized(const std::string& id) const {
  const ProcessResult result =
      run_process({program_, "--one", id, "--sanitized"}, options_of_child());
  if (result.signal == SIGILL) return "does what C++ leaves undefined";
  return wrong_result(result);
}

std::string SecondLook::look_for_races(Way way, const std::string& id) const {
  constexpr int kReported = 9;
  std::vector<std::string> words = {racecheck_, "--tool", "racecheck", "--error-exitcode",
                                    std::to_string(kReported)};
  if (way == lanes) {
    const std::vector<std::string> more = options_for_lanes();
    words.insert(words.end(), more.begin(), more.end());
  }
  words.insert(words.end(), {program_, "--one", id, "--device", device_,
                             way == lanes ? "--hopper-calls" : "--calls", "1"});
  const ProcessResult result = run_process(words, options_of_child());
  if (result.exit_status != kReported) return wrong_result(result);
  return way == lanes ? lanes_that_race(result.output) : "racecheck reports a hazard";
}

}  // namespace tilewright::mutants
