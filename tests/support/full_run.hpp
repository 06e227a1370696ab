#pragma once

#include <cstdlib>
#include <string_view>

/// Whether `scripts/test.sh --full` asks for the long form of a test.
inline bool is_full_run() {
  const char* const value = std::getenv("TILEWRIGHT_TEST_FULL");
  return value && std::string_view(value) == "1";
}
