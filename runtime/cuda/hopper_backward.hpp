#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "backward.hpp"
#include "launch_scope.hpp"

namespace tilewright::cuda {

/// The entry point that a backward binary for sm_90a has, and the portable ones have not.
inline constexpr std::string_view kHopperBackwardEntry = "tilewright_backward_main";

/// Whether it serves a call whose tensors are aligned: one that wants the gradients of q, k and v,
/// none of them a sum over the batch, in whatever bits.
bool hopper_backward_serves(const Spec& spec, const BackwardCall& call);

/// The same of a packed call: its sequences also have rows of tiles that begin with the first.
bool hopper_backward_serves(const Spec& spec, const BackwardCall& call, const PlanState& plan);

/// The main kernel of calls that are deterministic, or are not; null where the portable kernels
/// serve them all.
const Kernel* hopper_kernel(const LaunchScope& on, bool deterministic);

/// The variant whose binary has the portable kernels: for unaligned tensors, where the other one
/// takes tensor maps.
/// @param aligned whether a call's tensors are
KernelVariant portable_backward(const LaunchScope& on, bool aligned = true);

/// Bytes of workspace of a call: facts of rows, float32 sums of dq, and of gradients that are not
/// written in place.
/// @param sequences  of a packed call, whose shape is one_batch(); 0 of a dense one
/// @param rows       of q, of a tile: KernelLaunch::q_tile
/// @param gradients  the shapes of those of buffers and scalars
std::int64_t hopper_backward_workspace(const Spec& spec, const Shape& shape, std::int64_t sequences,
                                       std::int64_t rows, const std::vector<TensorView>& gradients);

/// The same for calls whose buffers are not known: gradients in 16 bits of more cells than a head
/// has rows and columns need more.
std::int64_t hopper_backward_workspace(const Spec& spec, const Shape& shape, std::int64_t sequences,
                                       std::int64_t rows);

/// What a deterministic call needs in addition.
std::int64_t bytes_of_turns(const Shape& shape, std::int64_t rows);

/// Launches the backward pass that takes tensor maps.
/// @throws Error with code tensor where call.workspace is too small
void launch_hopper_backward(const LaunchScope& on, const BackwardCall& call,
                            const BackwardTiles& tiles, const Bindings& bindings);

}  // namespace tilewright::cuda
