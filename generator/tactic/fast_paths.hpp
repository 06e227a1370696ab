#pragma once

#include <optional>
#include <string>
#include <vector>

#include "../snippet/snippet.hpp"
#include "../snippet/spec_facts.hpp"
#include "../spec/target.hpp"

namespace tilewright {

/// A way to compute a spec faster, and whether its kernels take it.
struct FastPath {
  struct SourceLocation {
    SnippetKind snippet;
    int line;    ///< from 1
    int column;  ///< from 1, in bytes
  };

  std::string name;  ///< "score_slope"
  bool used = false;
  std::string why_not = {};  ///< empty if used
  std::optional<SourceLocation> place = {};
};

/// score_slope, score_factors, fixed_maximum, reads_by_head, reads_by_row, reads_by_column,
/// own_elements, values_by_difference, proved_mask, tensor_maps, decode, of a spec with gradients
/// gradients_in_one_sweep and deterministic_gradients, and folded_q_scale, folded_k_scale,
/// folded_v_scale of the scales that the spec has. They describe the spec's forward kernel for
/// aligned tensors and the kernel of its mask.
/// @throws Error with code spec where the forced tactic does not fit
std::vector<FastPath> fast_paths(const SpecFacts& facts, const Target& target);

}  // namespace tilewright
