#pragma once

#include <vector>

#include "generator/spec/spec.hpp"

namespace tilewright::mutants {

/// Dense and packed specs with gradients, dropout and the output weights.
std::vector<Spec> training_specs();

/// Specs whose gradients Hopper's kernels make: sums of buffers and scalars by each index pattern,
/// dropout, wide heads, packed sequences.
std::vector<Spec> hopper_training_specs();

}  // namespace tilewright::mutants
