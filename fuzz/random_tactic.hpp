#pragma once

#include <optional>
#include <string>
#include <vector>

#include "../generator/spec/spec.hpp"
#include "../generator/spec/target.hpp"
#include "../generator/tactic/tactic.hpp"
#include "../verify/random.hpp"

namespace tilewright::verify::fuzz {

/// A tactic of a template with some of its parameters forced, valid for the kernel: tiles divide
/// the spec's block, each warp gets rows, all of it fits into shared memory.
/// @param name "cpu", "portable" or "hopper"
/// @return nothing where the template cannot serve the spec there
std::optional<TacticSpec> random_tactic(const std::string& name, const Spec& spec,
                                        const Target& target, const KernelVariant& traits,
                                        Random& random);

/// Two tactics with different tiles (for GPUs also stages and warps) where the spec allows it; in
/// any case valid ones. Of each template that serves the spec there.
std::vector<TacticSpec> different_tactics(const Spec& spec, const Target& target,
                                          const KernelVariant& traits);

/// The spec with the tactic that it has there anyway and, if that is "hopper", bounded_waits: a
/// wait without end ends the kernel with a report, and a call with an error. Such kernels are
/// slower.
Spec with_bounded_waits(Spec spec, const Target& target);

}  // namespace tilewright::verify::fuzz
