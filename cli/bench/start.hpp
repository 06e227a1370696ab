#pragma once

#include <string>

#include "cli/output.hpp"

namespace tilewright::cli {

/// What one process of the suite start does: CUDA starts once in a process, so each sample is a
/// separate process.
struct StartSample {
  std::string what;    ///< "cuda": CUDA alone, with a kernel that does nothing; "attention"
  std::string device;  ///< as --device takes it; parsed only when the clock runs
  std::string spec;    ///< a file
  std::string cubin;   ///< a file with the kernel that does nothing; for "cuda"
};

/// From before the first word to CUDA to the first result: {ms, steps {name: ms}}.
/// @throws Error as Attention; with code usage for another sample
Json run_start_sample(const StartSample& sample);

}  // namespace tilewright::cli
