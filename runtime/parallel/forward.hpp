#pragma once

#include "../api/context_parallel.hpp"
#include "plan_state.hpp"

namespace tilewright::parallel {

/// Refuses tensors that do not fit the plan.
/// @param spec of calls over pairs of shards
/// @param wants_lse the caller's spec names lse
/// @throws Error with code tensor
void require_tensors(const Spec& spec, bool wants_lse, const ForwardTensors& tensors,
                     const ContextPlanState& plan, const TensorView& workspace);

/// What ContextParallel::forward does with tensors that fit.
void run_forward(const Attention& attention, Communicator& communicator,
                 const ForwardTensors& tensors, ContextPlanState& plan, const Bindings& bindings,
                 const ContextCallOptions& options);

}  // namespace tilewright::parallel
