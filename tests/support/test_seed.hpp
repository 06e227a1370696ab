#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

/// TILEWRIGHT_TEST_SEED; a new one each time where it is not set. A reader of JSON holds it
/// exactly.
inline std::uint64_t test_seed() {
  if (const char* const seed = std::getenv("TILEWRIGHT_TEST_SEED")) {
    return std::strtoull(seed, nullptr, 10);
  }
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) >> 11;
}
