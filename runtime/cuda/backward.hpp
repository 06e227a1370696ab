#pragma once

#include <cstdint>
#include <vector>

#include "../../templates/abi/cuda_packed_backward.hpp"
#include "../call/backward_call.hpp"
#include "../call/plan_state.hpp"
#include "arguments.hpp"
#include "modules.hpp"

namespace tilewright::cuda {

/// Bytes of workspace of a call of backward: facts of rows, and sums of gradients of buffers and
/// scalars.
/// @param gradients  their shapes
std::int64_t backward_workspace(const Shape& shape, const std::vector<TensorView>& gradients,
                                bool deterministic);

/// The same for calls whose buffers are not known: a deterministic call, or gradients in 16 bits,
/// whose sums do not fit need more.
std::int64_t backward_workspace(const Spec& spec, const Shape& shape);

/// Whether a call's tensors and their gradients are multiples of 16 bytes apart.
bool is_aligned(const Spec& spec, const BackwardCall& call);

/// What says which tiles a call visits: its block mask, by rows and by columns, zeros where it has
/// none; or the plan of a packed call, which serves backward and has been built where it has
/// sequences.
struct BackwardTiles {
  abi::cuda::BlockMaskArguments rows = {};
  abi::cuda::BlockMaskArguments columns = {};
  const PlanState* plan = nullptr;
  std::int64_t work_side = 0;  ///< rows of q of an entry of the plan's work
};

/// Launches what a plan that serves backward needs after its own kernel.
/// @param kernel tilewright_backward_plan_columns
void launch_column_plan(const Driver& driver, const Kernel& kernel, const PlanState& plan,
                        Stream stream);

/// Launches the backward pass.
/// @param variant of the binary whose entry points are launched
/// @throws Error with code workspace where call.workspace is too small
void launch_backward(const Driver& driver, const ContextKernels& kernels,
                     const KernelVariant& variant, const Spec& spec, const BackwardCall& call,
                     const BackwardTiles& tiles, const Bindings& bindings);

}  // namespace tilewright::cuda
