#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "../generator/render/kernel_source.hpp"
#include "case.hpp"
#include "outcome.hpp"

namespace tilewright::verify::fuzz {

/// What was written for a case that failed.
struct FailureFiles {
  std::filesystem::path fuzz_case;             ///< JSON, for --replay
  std::vector<std::filesystem::path> sources;  ///< rendered kernels
  std::string replay;                          ///< the one line to type
};

/// The kernels that a call of the spec asks for first, the forward one in front.
std::vector<KernelVariant> kernels_of_call(const Spec& spec);

/// Where the cases of one run are written that failed.
class FailureFolder {
 public:
  /// Makes the folder where it is missing.
  /// @throws Error with code disk where nothing can be written to it
  explicit FailureFolder(std::filesystem::path folder);

  /// Writes a case, `fuzz-<run seed>-<number>.json`, and next to it the source of each kernel that
  /// it compiles. Another case of that number gets a number after it.
  /// @throws Error with code disk
  FailureFiles write(const FuzzCase& fuzz_case);

  /// From here on, what is written replaces what was.
  void start_over();
  /// Removes what was written before start_over() and not again since.
  void remove_replaced();

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  std::string stem_of(const FuzzCase& fuzz_case) const;
  void write_text(const std::filesystem::path& path, const std::string& text);

  std::filesystem::path folder_;
  std::map<std::string, std::string> kept_;  // cases by the stem of their files
  std::set<std::filesystem::path> written_;
  std::set<std::filesystem::path> replaced_;
};

/// Writes one case into its own folder.
/// @throws Error with code disk
FailureFiles write_failure(const std::filesystem::path& folder, const FuzzCase& fuzz_case);

}  // namespace tilewright::verify::fuzz
