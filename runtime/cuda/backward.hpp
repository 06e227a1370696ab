#pragma once

#include <cstdint>
#include <vector>

#include "../../templates/abi/cuda_backward.hpp"
#include "../call/backward_call.hpp"
#include "backward_tiles.hpp"
#include "launch_scope.hpp"

namespace tilewright::cuda {

class BackwardLaunch;
class GradientSums;

/// Bytes of the facts of a call's rows, with which its workspace begins.
std::int64_t facts_bytes(const Shape& shape);

/// Bytes of workspace of a call of backward: facts of rows, and sums of gradients of buffers and
/// scalars.
/// @param gradients  their shapes
std::int64_t backward_workspace(const Shape& shape, const std::vector<TensorView>& gradients,
                                bool deterministic);

/// The same for calls whose buffers are not known: a deterministic call, or gradients in 16 bits,
/// whose sums do not fit need more.
std::int64_t backward_workspace(const Spec& spec, const Shape& shape);

/// Bytes before a call's sums of gradients of buffers and scalars.
std::int64_t portable_bytes(const BackwardCall& call, const BackwardTiles& tiles);

/// Whether a call's tensors and their gradients are multiples of 16 bytes apart.
bool is_aligned(const Spec& spec, const BackwardCall& call);

/// Launches what the portable kernels need of a plan after its own kernel.
/// @param variant of the portable kernels
void launch_column_plan(const LaunchScope& on, const KernelVariant& variant, const PlanState& plan,
                        tilewright::Stream stream);

/// Launches the kernel that finds the facts of rows, which all others read.
/// @param shape  one_batch() of a packed call's
void launch_prepare(const BackwardLaunch& launch, const Spec& spec, const Shape& shape,
                    abi::cuda::BackwardArguments& arguments, SnippetParameter& snippet);

/// Launches the portable kernels but for the last, which writes gradients from their sums.
void launch_portable_sweeps(const LaunchScope& on, const KernelVariant& variant,
                            const BackwardCall& call, const BackwardTiles& tiles,
                            const Bindings& bindings, const GradientSums& sums);

/// Launches the backward pass.
/// @param variant of the binary whose entry points are launched
/// @throws Error with code workspace where call.workspace is too small
void launch_backward(const LaunchScope& on, const KernelVariant& variant, const BackwardCall& call,
                     const BackwardTiles& tiles, const Bindings& bindings);

}  // namespace tilewright::cuda
