#pragma once

#include <string>

#include "runtime/api/attention.hpp"
#include "runtime/api/toolchain.hpp"

namespace tilewright::mutants {

/// Launches of wrong_training_call: forward to be checked, then forward and backward, which a GPU
/// makes twice.
inline constexpr int kTrainingLaunches = 3, kTrainingLaunchesOnGpu = 5;

/// What forward, weights and backward leave that is not right by the reference, as a sentence;
/// empty where nothing is. Probabilities lie at the numbers that some elements draw, next to them
/// and outside of 0 to 1. A GPU runs backward twice, the second time deterministically.
/// @param attention of one of training_specs()
std::string wrong_training_call(const Attention& attention, const Toolchain& kernels);
/// The same with more rows and columns. @param attention of one of hopper_training_specs()
std::string wrong_hopper_training_call(const Attention& attention, const Toolchain& kernels);

}  // namespace tilewright::mutants
