#pragma once

#include <string>
#include <vector>

#include "cli/output.hpp"
#include "runtime/api/device.hpp"

namespace tilewright::cli {

/// The processor that kernels run on.
struct CpuFacts {
  std::string model;  ///< "AMD EPYC 9654 96-Core Processor"
  std::string isa;    ///< the highest level that it runs: "x86-64-v3"; or "x86-64"
};
CpuFacts cpu_facts();

/// A GPU and what drives it: what a figure is worth nothing without.
struct GpuFacts {
  std::string name;    ///< "NVIDIA H200"
  std::string target;  ///< "sm_90a"
  std::string driver;  ///< the driver's release: "580.159.04"; or the CUDA version that it is for
  std::string nvrtc;   ///< "13.0"
};
/// @throws Error with code device or compiler where something of it is missing
GpuFacts gpu_facts(const Device& device);
/// "NVIDIA H200 (sm_90a), driver 580.159.04, NVRTC 13.0"
std::string describe(const GpuFacts& gpu);
Json to_json(const GpuFacts& gpu);

/// Variables TILEWRIGHT_* of this process, as NAME=VALUE, sorted.
std::vector<std::string> tilewright_variables();

}  // namespace tilewright::cli
