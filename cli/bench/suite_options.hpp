#pragma once

#include <string>

#include "cli/bench/suites.hpp"

namespace tilewright::cli {

/// Refuses options that the suite or the device has no use for, a packed spec where the suite makes
/// dense calls alone, and a dense one where it makes packed calls.
/// @throws Error with code usage
void require_suite_takes(const std::string& suite, const BenchArguments& arguments);

/// The same for --serve.
/// @throws Error with code usage
void require_serve_takes(const BenchArguments& arguments);

}  // namespace tilewright::cli
