#pragma once

#include <string>

#include "cli/bench/suites.hpp"

namespace tilewright::cli {

/// The call of the user's spec on --inputs.
/// @throws Error with code usage without a spec, for a file, or sizes that are given twice
Workload own_workload(const BenchArguments& arguments);

}  // namespace tilewright::cli
