#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/compile_matrix/kernels.hpp"

namespace tilewright::compile_matrix {

/// What ptxas made of one kernel. Registers and spilled bytes are a thread's, shared memory a
/// block's.
struct SassFigures {
  std::int64_t registers = 0;
  std::int64_t spill_bytes = 0;
  std::int64_t shared_bytes = 0;
  std::int64_t instructions = 0;
};

/// Figures of kernels at one commit, by Wish::describe(), as a text file of one line each.
struct SassBaseline {
  std::string compiler;  ///< "V13.0.88"
  std::map<std::string, SassFigures> kernels;

  /// @throws Error with code file if a line does not have the form that text() writes
  static SassBaseline read(const std::string& path);
  std::string text() const;
};

/// The kernels whose speed docs/performance.md reports: of bench's suites dense and mods the
/// forward kernels, of its suite masks the kernels of the block mask, for sm_80 and sm_90a; of its
/// suite paged those of prompts, and backward kernels, for sm_90a.
std::vector<Wish> guarded_wishes();

/// How much a kernel may grow, as a share of its instructions.
inline constexpr double kMostGrowth = 0.01;

/// What a kernel costs more than at the baseline, a line each: more registers, spilled bytes or
/// shared memory, or more than kMostGrowth more instructions.
std::vector<std::string> growth(const SassFigures& before, const SassFigures& now);

}  // namespace tilewright::compile_matrix
