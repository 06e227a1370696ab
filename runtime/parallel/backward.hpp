#pragma once

#include "../api/context_parallel.hpp"
#include "plan_state.hpp"

namespace tilewright::parallel {

/// Refuses tensors of a backward call that do not fit the plan.
/// @param spec of calls over pairs of shards
/// @throws Error with code tensor
void require_backward_tensors(const Spec& spec, const BackwardTensors& tensors,
                              const ContextPlanState& plan, const Bindings& bindings,
                              const GradientBuffers& gradients, const ContextCallOptions& options);

/// What ContextParallel::backward does with tensors that fit.
void run_backward(const Attention& attention, Communicator& communicator,
                  const BackwardTensors& tensors, ContextPlanState& plan, const Bindings& bindings,
                  const GradientBuffers& gradients, const ContextCallOptions& options);

}  // namespace tilewright::parallel
