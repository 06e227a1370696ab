#pragma once

#include <optional>
#include <string>

#include "../generator/spec/spec.hpp"
#include "../runtime/api/attention.hpp"
#include "../runtime/api/block_mask.hpp"
#include "../runtime/api/shape.hpp"
#include "../runtime/call/plan_map.hpp"
#include "attention_values.hpp"
#include "guarded_tensor.hpp"
#include "problem.hpp"

namespace tilewright::verify {

/// The memory that a call of a spec writes to, on the host: poisoned and guarded (GuardedTensor).
class Outputs {
 public:
  /// @param shape Problem::shape
  Outputs(const Spec& spec, const Shape& shape, const Placement& placement = {});

  /// The problem's inputs with these outputs.
  ForwardTensors tensors(const Problem& problem) const;
  /// What was written, out in the spec's layout. NaN in rows that no sequence has.
  AttentionValues values(const Spec& spec) const;
  /// "memory around out was written to: 3 elements after its end", "row 17 of out belongs to no
  /// sequence and was written to"; empty where nothing was.
  std::optional<std::string> damage(const Problem& problem) const;

 private:
  std::optional<std::string> damaged_row(const Problem& problem) const;

  GuardedTensor out_;
  std::optional<GuardedTensor> lse_;
  std::optional<GuardedTensor> max_scores_;
  std::optional<GuardedTensor> weights_;
};

/// What a call took, and did in addition to its outputs.
struct CallFacts {
  double mask_ms = 0;
  double forward_ms = 0;
  /// StagedCall::changed_input, StagedPlan::damage, StagedWorkspace::damage
  std::optional<std::string> changed_input = {};
  std::optional<PlanMap> plan_map = {};  ///< of a packed call
};

/// Runs a call whose tensors lie on the host, on the Attention's device, and waits for it.
/// @param facts null: the inputs are not looked at
/// @return the block mask, where the spec has a mask_mod and is not packed
/// @throws Error as Attention::block_mask, StagedPlan and Attention::forward
std::optional<BlockMask> run_call(const Attention& attention, const Problem& problem,
                                  const Outputs& outputs, CallFacts* facts = nullptr);

/// The same for whom only the result matters.
AttentionValues run_call(const Attention& attention, const Problem& problem);

}  // namespace tilewright::verify
