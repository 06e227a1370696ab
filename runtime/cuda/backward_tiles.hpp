#pragma once

#include <cstdint>

#include "../../templates/abi/cuda_forward.hpp"
#include "../call/plan_state.hpp"

namespace tilewright::cuda {

/// What says which tiles a call visits: its block mask, by rows and by columns, zeros where it has
/// none; or the plan of a packed call, which serves backward and has been built where it has
/// sequences.
struct BackwardTiles {
  abi::cuda::BlockMaskArguments rows = {};
  abi::cuda::BlockMaskArguments columns = {};
  const PlanState* plan = nullptr;
  std::int64_t work_side = 0;  ///< rows of q of an entry of the plan's work
  /// Whether the portable kernels compute only where the plan has found that sequences share rows
  /// of k, and Hopper's where they share none.
  bool may_share_rows = false;
};

}  // namespace tilewright::cuda
