#include "base/memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.hpp"

namespace tilewright {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

// What the kernel could hand out without taking it from another process.
std::uint64_t of_machine() {
  std::ifstream file("/proc/meminfo");
  std::uint64_t available = 0, swap = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kib = 0;
    words >> name >> kib;
    if (name == "MemAvailable:") available = kib << 10;
    if (name == "SwapFree:") swap = kib << 10;
  }
  if (available > 0) return available + swap;
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return kUnlimited;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

// "max" is no number, and leaves no limit.
std::uint64_t number_in(const char* path, std::uint64_t otherwise) {
  std::uint64_t number = 0;
  return std::ifstream(path) >> number ? number : otherwise;
}

// A container sees its own group at the root; version 2 first, then version 1.
std::uint64_t of_group() {
  const std::uint64_t limit = number_in("/sys/fs/cgroup/memory.max", kUnlimited);
  if (limit != kUnlimited) {
    const std::uint64_t used = number_in("/sys/fs/cgroup/memory.current", 0);
    return limit - std::min(limit, used);
  }
  const std::uint64_t old = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", kUnlimited);
  if (old == kUnlimited) return kUnlimited;
  return old - std::min(old, number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes", 0));
}

std::uint64_t of_address_space() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const std::uint64_t used = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, used);
}

}  // namespace

std::uint64_t available_memory() {
  return std::min({of_machine(), of_group(), of_address_space()});
}

std::string memory_text(double bytes) {
  constexpr double kMiB = 1 << 20, kGiB = 1 << 30;
  if (bytes < kMiB) return fmt::format("{:.0f} bytes", bytes);
  if (bytes < kGiB) return fmt::format("{:.1f} MiB", bytes / kMiB);
  return bytes < 1e6 * kGiB ? fmt::format("{:.1f} GiB", bytes / kGiB)
                            : fmt::format("{:.3g} GiB", bytes / kGiB);
}

void require_memory_for(double bytes, std::string_view what) {
  constexpr double kAlwaysTried = 64 << 20;
  if (bytes <= kAlwaysTried) return;
  const auto available = static_cast<double>(available_memory());
  if (bytes <= available) return;
  throw Error(ErrorCode::memory,
              fmt::format("{} need {}, but this machine has {} available", what, memory_text(bytes),
                          memory_text(available)),
              "use smaller shapes or a machine with more memory");
}

}  // namespace tilewright
