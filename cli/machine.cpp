#include "cli/machine.hpp"

#include <algorithm>
#include <fstream>

#include <unistd.h>

#include "runtime/thread_pool.hpp"

namespace tilewright::cli {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string cpu_isa() {
#if defined(__x86_64__)
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? "x86-64-v4" : v3 ? "x86-64-v3" : "x86-64";
#else
  return "not x86-64";
#endif
}

}  // namespace

CpuFacts cpu_facts() {
  return {.model = cpu_model(), .isa = cpu_isa(), .threads = ThreadPool::default_size()};
}

std::vector<std::string> tilewright_variables() {
  std::vector<std::string> variables;
  for (char** entry = ::environ; entry && *entry; ++entry) {
    if (std::string(*entry).starts_with("TILEWRIGHT_")) variables.emplace_back(*entry);
  }
  std::sort(variables.begin(), variables.end());
  return variables;
}

}  // namespace tilewright::cli
