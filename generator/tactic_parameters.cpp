#include "generator/tactic_parameters.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"

namespace tilewright {

void fail_tactic(const std::string& message, std::string hint) {
  throw Error(ErrorCode::spec, "tactic: " + message, std::move(hint));
}

std::int64_t parameter(const Tactic& tactic, const char* name) {
  return tactic.parameters.at(name);
}

void force_parameters(const TacticSpec& forced, Tactic& tactic) {
  std::vector<std::string> names;
  for (const auto& [name, value] : tactic.parameters) names.push_back(name);
  for (const auto& [name, value] : forced.parameters) {
    if (!tactic.parameters.contains(name)) {
      fail_tactic(fmt::format("\"{}\" has no parameter \"{}\", allowed are {}", tactic.name, name,
                              one_of(names)),
                  did_you_mean(name, names));
    }
    tactic.parameters[name] = value;
  }
}

void require_range(const Tactic& tactic, const char* name, std::int64_t least,
                   std::int64_t greatest, std::int64_t step) {
  const std::int64_t value = parameter(tactic, name);
  if (value >= least && value <= greatest && value % step == 0) return;
  const std::string which = step == 1 ? std::string() : fmt::format("multiples of {} from ", step);
  fail_tactic(fmt::format("{} is {}, allowed are {}{} to {}", name, value, which, least, greatest));
}

void require_divides(const Tactic& tactic, const char* name, const char* side_name,
                     std::int64_t side, std::string hint) {
  const std::int64_t value = parameter(tactic, name);
  if (side % value == 0) return;
  fail_tactic(fmt::format("{} is {}, which does not divide {} = {}", name, value, side_name, side),
              std::move(hint));
}

}  // namespace tilewright
