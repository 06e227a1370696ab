#pragma once

#include <optional>
#include <string>

#include "tactic.hpp"

namespace tilewright {

/// The tactic of the twin that keeps a sequence's k and v of one head in shared memory while rows
/// of q pass by. Its `stages` tiles hold all columns of a sequence; its three warpgroups take rows
/// independently of each other. docs/decisions/0095-k-and-v-stay.md has the reasons.
///
/// Nothing where a spec or a target has no such twin.
std::optional<HopperTactic> resident_tactic(const SpecFacts& facts, const Target& target,
                                            const KernelVariant& kernel);

/// Whether a forward kernel has this twin.
/// @param kernel either of them
bool has_resident_kernel(const SpecFacts& facts, const Target& target, const KernelVariant& kernel);

/// Why a spec that Hopper's kernel serves has no such twin.
std::string why_not_resident(const SpecFacts& facts);

}  // namespace tilewright
