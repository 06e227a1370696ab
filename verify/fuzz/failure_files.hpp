#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "case.hpp"
#include "outcome.hpp"

namespace tilewright::verify::fuzz {

/// What was written for a case that failed.
struct FailureFiles {
  std::filesystem::path fuzz_case;             ///< JSON, for --replay
  std::vector<std::filesystem::path> sources;  ///< rendered kernels
  std::string replay;                          ///< the one line to type
};

/// Writes a case into a folder, which is made where it is missing: `fuzz-<run seed>-<number>.json`,
/// and beside it the source of each kernel that it compiles.
/// @throws Error with code disk
FailureFiles write_failure(const std::filesystem::path& folder, const FuzzCase& fuzz_case);

}  // namespace tilewright::verify::fuzz
