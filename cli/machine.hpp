#pragma once

#include <string>
#include <vector>

namespace tilewright::cli {

/// The processor that kernels run on.
struct CpuFacts {
  std::string model;  ///< "AMD EPYC 9654 96-Core Processor"
  std::string isa;    ///< the highest CPU target that it runs: "x86-64-v3"; or "x86-64"
  int threads = 1;
};
CpuFacts cpu_facts();

/// What the NVIDIA driver says. Starts the driver, which may take a second.
struct GpuFacts {
  struct Gpu {
    std::string name;
    std::string target;  ///< "sm_90"
    std::size_t memory_bytes = 0;
  };
  std::string driver;   ///< the CUDA version that it serves, "13.0"; empty: none
  std::string problem;  ///< why there is no driver, or why it does not work
  std::vector<Gpu> gpus;
};
GpuFacts gpu_facts();

/// Every libnvrtc found, by the order in which they are tried: TILEWRIGHT_NVRTC, the loader's path,
/// /usr/local/cuda*, the nvidia-cuda-nvrtc Python wheel.
std::vector<std::string> nvrtc_paths();

/// Variables TILEWRIGHT_* of this process, as NAME=VALUE, sorted.
std::vector<std::string> tilewright_variables();

}  // namespace tilewright::cli
