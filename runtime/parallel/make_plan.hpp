#pragma once

#include <memory>

#include "../api/context_parallel.hpp"
#include "plan_state.hpp"

namespace tilewright::parallel {

/// What ContextParallel::plan does, but for its connections.
/// @param attention over pairs of shards
std::shared_ptr<ContextPlanState> make_plan(const Attention& attention, Communicator& communicator,
                                            const Shape& whole, const Bindings& bindings,
                                            const ContextPlanOptions& options);

/// The same of packed sequences.
std::shared_ptr<ContextPlanState> make_packed_plan(const Attention& attention,
                                                   Communicator& communicator,
                                                   const SharedSequences& whole,
                                                   const Bindings& bindings,
                                                   const ContextPlanOptions& options);

}  // namespace tilewright::parallel
