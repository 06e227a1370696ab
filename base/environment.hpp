#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnostics.hpp"

namespace tilewright {

/// A variable of the environment that the library or the command line reads.
struct EnvironmentVariable {
  std::string_view name;     ///< "TILEWRIGHT_CACHE"
  std::string_view meaning;  ///< one line
};

/// Every variable that is read, sorted by name: docs/cli.md and README.md list these.
std::span<const EnvironmentVariable> environment_variables();

/// A variable TILEWRIGHT_*, or one of a name that is nearly so, that this process has and that no
/// code reads.
struct UnknownVariable {
  std::string name;
  std::string nearest;  ///< the name that was probably meant; empty where no name is near
};

/// The unknown variables among `environment` (NAME=VALUE each), sorted. TILEWRIGHT_TEST_* and
/// TILEWRIGHT_EMULATED_* belong to the tests and TILEWRIGHT_BUILD_* to CMake: none of them is
/// unknown.
std::vector<UnknownVariable> unknown_variables(std::span<const std::string> environment);

/// The unknown variables of this process.
std::vector<UnknownVariable> unknown_variables();

/// "TILEWRIGHT_CAHCE is set, but tilewright reads no variable of that name: did you mean
/// TILEWRIGHT_CACHE?"
std::string describe(const UnknownVariable& variable);

/// Gives `diagnostics` one warning for each unknown variable of this process. The first call with
/// a sink reports; later calls do nothing.
void report_unknown_variables(const DiagnosticsSink& diagnostics);

}  // namespace tilewright
