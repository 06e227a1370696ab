#pragma once

#include <cstdint>
#include <string>

#include "kernel_variant.hpp"
#include "tactic.hpp"

namespace tilewright {

/// How a GPU's backward kernels run a spec. A block of threads owns rows of q or columns, both as
/// many as q_tile says, and kv_tile rows of the other pass by at a time.
struct BackwardTactic {
  PortableTactic tiles;
  std::int64_t shared_bytes = 0;  ///< dynamic shared memory of a launch
  bool one_sweep = false;         ///< blocks that own columns also add to float32 sums of dq
};

/// Whether dk and dv are too wide for the registers of one block, and have separate blocks.
bool splits_backward_columns(const Spec& spec);

/// Whether the products of a spec's backward pass run on tensor cores: forward's do, and out has
/// the same dtype.
bool backward_uses_tensor_cores(const Spec& spec);

/// Whether blocks that own columns also compute dq, by sums in memory to which they add in any
/// order: kernels for aligned dense calls in 16 bits that need not be deterministic.
bool sweeps_backward_once(const Spec& spec, const KernelVariant& kernel);

/// Why not; empty if so.
std::string why_not_one_sweep(const Spec& spec, const KernelVariant& kernel);

/// @param diagonals  reads whose gradients a kernel sums along diagonals of a tile
BackwardTactic choose_backward_tactic(const SpecFacts& facts, const Target& target,
                                      const KernelVariant& kernel, std::int64_t diagonals);

}  // namespace tilewright
