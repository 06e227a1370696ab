#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "../../base/error.hpp"

namespace tilewright {

/// What one compile may take. The first two come from the environment.
struct CompileLimits {
  std::chrono::seconds wall{120};         ///< TILEWRIGHT_COMPILE_TIMEOUT, from 1 to 86400
  std::uint64_t address_space = 2 << 10;  ///< in MiB: TILEWRIGHT_COMPILE_MEMORY, from 256
  std::chrono::seconds cpu{60};           ///< of each process; never more than `wall`
  std::uint64_t output = 256;             ///< in MiB: of a binary and of each file on the way

  bool operator==(const CompileLimits&) const = default;
};

/// Thrown where a compile was stopped by a limit: the same source would be stopped again.
class LimitReached : public Error {
 public:
  using Error::Error;
};

/// @throws Error with code usage where a variable holds no such number
CompileLimits compile_limits();

/// Takes them for this process and the programs that it starts, on top of what was used already. A
/// sanitizer's own address space is not limited. What the system refuses to set stays as it was.
void apply_to_this_process(const CompileLimits& limits);

/// What to do about a compile that was too greedy, for hints.
std::string advice_for_time(const CompileLimits& limits);
std::string advice_for_memory(const CompileLimits& limits);

}  // namespace tilewright
