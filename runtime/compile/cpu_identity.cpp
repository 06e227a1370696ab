#include "runtime/compile/cpu_identity.hpp"

#include <cstdint>

#include <fmt/format.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#else
#include <sys/auxv.h>
#endif

#include "base/proc_file.hpp"

namespace tilewright {
namespace {

#if defined(__x86_64__) || defined(__i386__)

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
  return r;
}

// Which register files the system saves: without that, wide instructions are not usable.
unsigned enabled_state(const Registers& features) {
  constexpr unsigned kOsXsave = 1u << 27;
  if (!(features.c & kOsXsave)) return 0;
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

std::string features() {
  std::string text;
  const auto add = [&text](const Registers& r) {
    text += fmt::format("{:x}.{:x}.{:x}.{:x} ", r.a, r.b, r.c, r.d);
  };
  add(cpuid(0));  // vendor
  Registers basic = cpuid(1);
  text += fmt::format("state {:x} ", enabled_state(basic));
  basic.b &= 0x0000ff00u;  // the rest of ebx tells one core from another
  add(basic);
  add(cpuid(7, 0));
  add(cpuid(7, 1));
  add(cpuid(0xd, 1));
  add(cpuid(0x19));
  add(cpuid(0x24));
  add(cpuid(0x80000001u));
  for (unsigned leaf = 0x80000002u; leaf <= 0x80000004u; ++leaf) add(cpuid(leaf));  // brand
  text += fmt::format("{:x}", cpuid(0x80000008u).b);
  return text;
}

// As the x86-64 psABI defines the levels.
int x86_64_level() {
  constexpr unsigned kFma = 1u << 12, kMovbe = 1u << 22, kF16c = 1u << 29;
  constexpr unsigned kAvx2Bmi = 1u << 3 | 1u << 5 | 1u << 8;
  constexpr unsigned kAvx512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;
  constexpr unsigned kLzcnt = 1u << 5;
  constexpr unsigned kYmmState = 6, kZmmState = 0xe6;
  const auto has = [](unsigned value, unsigned all) { return (value & all) == all; };
  const Registers basic = cpuid(1);
  const unsigned state = enabled_state(basic);
  const unsigned extended = cpuid(7, 0).b;
  const bool is_v3 = has(state, kYmmState) && has(basic.c, kFma | kMovbe | kF16c) &&
                     has(extended, kAvx2Bmi) && has(cpuid(0x80000001u).c, kLzcnt);
  if (!is_v3) return 2;
  return has(state, kZmmState) && has(extended, kAvx512) ? 4 : 3;
}

#else

int x86_64_level() {
  return 0;
}

std::string features() {
  return fmt::format("{:x}.{:x} {}", getauxval(AT_HWCAP), getauxval(AT_HWCAP2),
                     read_proc_file("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1"));
}

#endif

}  // namespace

const std::vector<Target>& cpu_targets() {
  static const auto& targets = *new std::vector<Target>([] {
    std::vector<Target> found;
    for (int level = x86_64_level(); level >= 3; --level) {
      found.push_back(Target::parse(fmt::format("cpu-x86-64-v{}", level)));
    }
    return found;
  }());
  return targets;
}

const std::string& cpu_identity() {
  static const auto& identity =
      *new std::string(fmt::format("{} caches {} {}", features(), sysconf(_SC_LEVEL1_DCACHE_SIZE),
                                   sysconf(_SC_LEVEL2_CACHE_SIZE)));
  return identity;
}

}  // namespace tilewright
