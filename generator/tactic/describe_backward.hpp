#pragma once

#include <string>

#include "../snippet/spec_facts.hpp"
#include "../spec/target.hpp"
#include "kernel_variant.hpp"

namespace tilewright {

/// How a spec's backward kernel runs it: "hopper columns=128 rows=64", or as Tactic::describe has
/// the portable ones and the CPU's.
/// @param kernel  with role backward
std::string describe_backward(const SpecFacts& facts, const Target& target,
                              const KernelVariant& kernel);

}  // namespace tilewright
