#pragma once

#include <string>

#include "cli/bench/suites.hpp"

namespace tilewright::cli {

/// The call of the user's spec on --inputs.
/// @throws Error with code usage without a spec, for a file, or sizes that are given twice
Workload own_workload(const BenchArguments& arguments);

/// Refuses --inputs where a suite chooses sizes by itself, a packed spec where it makes dense calls
/// alone, and a dense one where it makes packed calls.
/// @throws Error with code usage
void require_suite_takes(const std::string& suite, const BenchArguments& arguments);

}  // namespace tilewright::cli
