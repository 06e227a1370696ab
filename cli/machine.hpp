#pragma once

#include <string>
#include <vector>

namespace tilewright::cli {

/// The processor that kernels run on.
struct CpuFacts {
  std::string model;  ///< "AMD EPYC 9654 96-Core Processor"
  std::string isa;    ///< the highest level that it runs: "x86-64-v3"; or "x86-64"
  int threads = 1;    ///< that a call uses
};
CpuFacts cpu_facts();

/// Variables TILEWRIGHT_* of this process, as NAME=VALUE, sorted.
std::vector<std::string> tilewright_variables();

}  // namespace tilewright::cli
