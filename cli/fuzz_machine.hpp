#pragma once

#include <string>

namespace tilewright::cli {

/// What a fuzzing campaign must know before it starts its processes.
struct FuzzMachine {
  std::string device;      ///< "cpu" or "cuda"
  std::string gpu_target;  ///< "sm_90a"; empty on a CPU
  bool has_nvrtc = false;
};

/// Looks in a separate process: one that has touched a GPU can start no others that use it.
/// @param device "auto", "cpu" or "cuda"
/// @throws Error with code usage for another text, with code device or compiler where it is missing
FuzzMachine fuzz_machine(const std::string& device);

}  // namespace tilewright::cli
