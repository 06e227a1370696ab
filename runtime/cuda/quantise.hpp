#pragma once

#include "../api/bindings.hpp"
#include "../call/plan_state.hpp"
#include "../call/quantise_call.hpp"
#include "modules.hpp"

namespace tilewright::cuda {

/// Launches quantise.
/// @param call from resolve_quantise, with blocks
/// @param plan null: all rows of the tensor
/// @param is_paged whether the spec's k and v are in pages
void launch_quantise(const Driver& driver, const Kernel& kernel, const QuantiseCall& call,
                     const PlanState* plan, bool is_paged, const Bindings& bindings, Stream stream);

}  // namespace tilewright::cuda
