#pragma once

#include <string>
#include <vector>

#include "../snippet/gradient_terms.hpp"
#include "../snippet/spec_facts.hpp"
#include "../spec/target.hpp"
#include "kernel_variant.hpp"

namespace tilewright {

/// How a backward kernel sums the terms that one scalar, or one read of a buffer, gives a gradient.
struct GradientSum {
  std::string name;                       ///< of the scalar or the buffer
  std::vector<std::string> indices = {};  ///< of the read, as text; empty of a scalar
  GradientPattern pattern = GradientPattern::head;
  bool may_share_cells = false;  ///< of the pattern difference: differences may have one cell
  std::string way = {};  ///< "along diagonals of 64 rows x 16 columns in shared memory, ..."
};

/// What the sum has one number for, in words: "by kv_idx - q_idx".
std::string describe_pattern(GradientPattern pattern);

/// In the order of score_mod's text. Empty where its derivative is unknown.
/// @param kernel  with role backward
std::vector<GradientSum> describe_gradient_sums(const SpecFacts& facts, const Target& target,
                                                const KernelVariant& kernel);

}  // namespace tilewright
