#pragma once

#include <cstdlib>
#include <string>

/// Empty where the variable is not set.
inline std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}
