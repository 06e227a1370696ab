#include "runtime/compile/compile_limits.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <sys/resource.h>

#include "base/error.hpp"
#include "base/sanitizers.hpp"

namespace tilewright {
namespace {

std::int64_t variable(const char* name, std::int64_t least, std::int64_t most,
                      std::int64_t otherwise, std::string_view unit) {
  const char* value = std::getenv(name);
  if (!value || !*value) return otherwise;
  const std::string_view text = value;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > most) {
    throw Error(ErrorCode::usage, fmt::format("{} is \"{}\"", name, text),
                fmt::format("give whole {} from {} to {}, or unset it for {}", unit, least, most,
                            otherwise));
  }
  return number;
}

void limit(int resource, rlim_t amount) {
  rlimit current{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &current) != 0) return;
  current.rlim_cur = std::min(amount, current.rlim_max);
  setrlimit(static_cast<__rlimit_resource>(resource), &current);
}

rlim_t cpu_seconds_used() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<rlim_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + 1);
}

constexpr rlim_t kMebibyte = rlim_t{1} << 20;

}  // namespace

CompileLimits compile_limits() {
  CompileLimits limits;
  limits.wall = std::chrono::seconds(
      variable("TILEWRIGHT_COMPILE_TIMEOUT", 1, 86400, limits.wall.count(), "seconds"));
  limits.cpu = std::min(limits.cpu, limits.wall);
  // A longer time was asked for, so the processor may be busy for longer.
  if (limits.wall > CompileLimits().wall) limits.cpu = limits.wall;
  limits.address_space =
      static_cast<std::uint64_t>(variable("TILEWRIGHT_COMPILE_MEMORY", 256, 1 << 20,
                                          static_cast<std::int64_t>(limits.address_space), "MiB"));
  return limits;
}

void apply_to_this_process(const CompileLimits& limits) {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, limits.output * kMebibyte);
  limit(RLIMIT_CPU, cpu_seconds_used() + static_cast<rlim_t>(limits.cpu.count()));
  if (!kHasSanitizer) limit(RLIMIT_AS, limits.address_space * kMebibyte);
}

std::string advice_for_time(const CompileLimits& limits) {
  return fmt::format(
      "simplify the snippet, or raise the limit with TILEWRIGHT_COMPILE_TIMEOUT (seconds; {} now)",
      limits.wall.count());
}

std::string advice_for_memory(const CompileLimits& limits) {
  return fmt::format(
      "simplify the snippet, or raise the limit with TILEWRIGHT_COMPILE_MEMORY (MiB; {} now)",
      limits.address_space);
}

}  // namespace tilewright
