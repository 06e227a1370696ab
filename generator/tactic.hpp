#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "kernel_variant.hpp"
#include "spec.hpp"
#include "target.hpp"

namespace tilewright {

/// One way to run a spec on a target: the template and its tile sizes.
struct Tactic {
  std::string name;                                ///< "cpu"; for GPUs "portable" or "hopper"
  std::map<std::string, std::int64_t> parameters;  ///< "q_tile", "kv_tile", ...

  /// "cpu q_tile=64 kv_tile=128 vector_bytes=64"
  std::string describe() const;
};

using KernelTraits = KernelVariant;

/// The tactic of one of a spec's forward kernels, the forced one's parameters filled in where it
/// leaves them open. A forced tactic that needs aligned tensors leaves other kernels alone.
/// @throws Error with code spec where the forced tactic does not exist or does not fit
Tactic choose_tactic(const Spec& spec, const Target& target, const KernelTraits& kernel);

/// The same for the kernel that serves most calls: aligned, and masked where the spec has a
/// mask_mod.
Tactic choose_tactic(const Spec& spec, const Target& target);

}  // namespace tilewright
