#pragma once

#include <memory>
#include <optional>
#include <string>

#include "../runtime/api/attention.hpp"
#include "../runtime/call/plan_map.hpp"
#include "../runtime/call/staged_plan.hpp"
#include "../runtime/call/staged_workspace.hpp"
#include "../verify/problem.hpp"
#include "case_gradients.hpp"
#include "written.hpp"

namespace tilewright::verify::fuzz {

/// What kernels made of a call in addition to its outputs.
struct KernelCall {
  std::optional<BlockMask> mask = {};               ///< of a dense call with a mask_mod
  std::unique_ptr<StagedPlan> plan = {};            ///< of a packed call
  std::unique_ptr<StagedWorkspace> workspace = {};  ///< of a dense call that is split
  std::optional<PlanMap> map = {};                  ///< of the plan
  std::optional<std::string> changed = {};          ///< foreign memory that the call wrote
};

/// The backward pass of a call, after forward.
struct BackwardPart {
  const CaseGradients* gradients = nullptr;  ///< null: none
  bool deterministic = false;
};

/// Makes the block mask or the plan, and runs forward, on the Attention's device; waits for it.
/// @param is_bounded of a packed call: FuzzPacking's
/// @param is_split of a dense call: it is given the workspace that it asks for
/// @param backward of a spec with gradients: runs too
/// @throws Error as Attention and StagedPlan
KernelCall run_kernels(const Attention& attention, const Problem& problem, const Written& written,
                       bool is_bounded, bool is_split, const BackwardPart& backward = {});

/// Runs forward alone, with the mask or plan of a call of the same problem, on the tensors as they
/// are.
/// @throws Error as Attention::forward
void forward_again(const Attention& attention, const Problem& problem,
                   const ForwardTensors& tensors, const KernelCall& call);

/// A packed problem's sizes. @param is_bounded FuzzPacking's
PackedShape packed_shape(const Problem& problem, bool is_bounded);

}  // namespace tilewright::verify::fuzz
