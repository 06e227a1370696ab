#pragma once

#include <vector>

#include "generator/spec/spec.hpp"
#include "runtime/api/device.hpp"
#include "tests/battery/cases.hpp"

namespace tilewright::mutants {

/// A spec and the calls of it that mutants have to survive.
struct Subject {
  Spec spec;
  std::vector<battery::Case> calls;
};

/// Of all subjects together and special_calls.hpp, for one mutant.
/// On a GPU there are packed calls as well, and the last subjects have none.
inline constexpr int kMostCalls = 315, kMostCallsOnGpu = 345;

/// Specs of examples/ and tests/battery/variants/ that differ in what they make of the templates,
/// each with a few of the battery's calls. On a GPU a spec that several templates can serve stands
/// there once for each, with longer calls, whose tiles are fetched while others are worked on.
std::vector<Subject> subjects(Device::Kind device);

}  // namespace tilewright::mutants
