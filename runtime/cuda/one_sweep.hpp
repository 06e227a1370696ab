#pragma once

#include <cstdint>
#include <string_view>

#include "backward.hpp"
#include "launch_scope.hpp"

namespace tilewright::cuda {

/// The entry point that a portable backward binary has where one sweep computes all gradients.
inline constexpr std::string_view kOneSweepEntry = "tilewright_backward_one_sweep";

/// The main kernel of aligned dense calls that need not be deterministic; null where they take two
/// sweeps.
const Kernel* one_sweep_kernel(const LaunchScope& on);

/// Whether it serves an aligned call: one that need not be deterministic, of whose gradients none
/// is a sum over the batch.
bool one_sweep_serves(const BackwardCall& call);

/// Bytes of workspace of such a call: facts of rows, and float32 sums of dq.
/// @param rows  of q, of a tile: KernelLaunch::passing_rows
std::int64_t one_sweep_workspace(const Spec& spec, const Shape& shape, std::int64_t rows);

/// Launches the backward pass.
/// @throws Error with code tensor where call.workspace is too small
void launch_one_sweep(const LaunchScope& on, const BackwardCall& call, const BackwardTiles& tiles,
                      const Bindings& bindings);

}  // namespace tilewright::cuda
