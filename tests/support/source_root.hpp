#pragma once

#include <filesystem>

#include "tests/support/environment.hpp"

/// Where the checkout's files are that a test reads: TILEWRIGHT_TEST_ROOT on a machine that got
/// only them (scripts/gpu_check.sh pack), else where it was built.
/// @param built_in TILEWRIGHT_SOURCE_DIR
inline std::filesystem::path source_root(const char* built_in) {
  const std::string other = environment("TILEWRIGHT_TEST_ROOT");
  return other.empty() ? built_in : other;
}
