#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tactic.hpp"

namespace tilewright {

/// How templates/cuda/kernels/hopper_backward.cu.jinja runs a spec on sm_90a.
struct HopperBackwardTactic {
  std::int64_t key_tile_dim = 0;    ///< columns of rows of q and k in shared memory
  std::int64_t value_tile_dim = 0;  ///< likewise, of dout and v
  bool is_wide = false;  ///< a dimension is above 128: two warpgroups share the head dimensions
  std::int64_t first_key_share = 0;    ///< there, columns of dk and dq that the first one owns
  std::int64_t first_value_share = 0;  ///< likewise, of dv
  std::int64_t columns = 0;            ///< that a block of threads owns
  std::int64_t rows = 0;               ///< of q, of a tile that passes by
  std::int64_t stages = 0;             ///< tiles of Q, and of dO, in shared memory
  std::int64_t mask_unroll = 0;        ///< rows of q that mask_mod is compiled for at once
  std::int64_t threads = 0;
  std::int64_t shared_bytes = 0;  ///< dynamic shared memory of a launch
  std::int64_t diagonals = 0;     ///< reads whose gradients are summed along a tile's diagonals
  std::int64_t own_sums = 0;      ///< over a head's tiles
  std::int64_t row_reads = 0;     ///< over a tile's columns
  /// Of shared memory, for the value by the difference of indices (SpecFacts::whole_difference). 0
  /// where there is none, or no room for it.
  std::int64_t difference_bytes = 0;
};

/// Columns of sums of dq that a row of q has in the workspace: head_dim, padded to whole products.
std::int64_t hopper_backward_dq_columns(const Spec& spec);

/// The tactic of a spec's backward kernel, or nothing where the portable one serves.
std::optional<HopperBackwardTactic> hopper_backward_tactic(const SpecFacts& facts,
                                                           const Target& target,
                                                           const KernelVariant& kernel);

/// Whether a backward kernel has a twin for deterministic calls, which the portable kernel else
/// serves.
bool has_deterministic_backward(const SpecFacts& facts, const Target& target, KernelVariant kernel);

/// Why the portable kernel serves; empty where it does not.
std::string why_not_hopper_backward(const SpecFacts& facts, const Target& target,
                                    const KernelVariant& kernel);

}  // namespace tilewright
