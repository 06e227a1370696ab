#pragma once

#include <vector>

#include "agreement.hpp"
#include "meetings.hpp"
#include "plan_state.hpp"

// What plans of dense and of packed calls have in common.

namespace tilewright::parallel {

/// Of the options and of what is bound: what ranks compare. Bindings may be left out, where calls
/// alone need them.
/// @param shape that named dimensions of buffers have
/// @throws Error as Bindings::check
void add_facts(std::vector<Fact>& facts, const Attention& attention, const Bindings& bindings,
               const Shape& shape, const ContextPlanOptions& options);

/// Adds the schedule of backward, of a spec with gradients.
/// @param bindings     fit, where buffers have gradients
/// @param kernel_bytes that Attention::backward needs for the greatest of the calls
void add_gradients(ContextPlanState& state, const Spec& spec, const Bindings& bindings,
                   const ScheduleSizes& sizes, int ranks, const KernelBytes& kernel_bytes);

/// The rest, once calls are known: traffic, the lane, room for messages.
void complete_plan(ContextPlanState& state, const Attention& attention, const Meetings& meetings,
                   const ScheduleSizes& sizes, int ranks);

}  // namespace tilewright::parallel
