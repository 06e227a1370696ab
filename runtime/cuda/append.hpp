#pragma once

#include <cstdint>

#include "../../templates/abi/append.hpp"
#include "../api/bindings.hpp"
#include "../call/plan_state.hpp"
#include "modules.hpp"

namespace tilewright::cuda {

/// Launches append.
/// @param call from resolve_append, with rows and pages
/// @param plan null: the call has slots
/// @param work_side rows of q of an entry of the plan's work
/// @param bindings read by the spec's k_scale and v_scale; null: it has none
void launch_append(const Driver& driver, const Kernel& kernel, abi::AppendArguments call,
                   const PlanState* plan, std::int64_t work_side, const Bindings* bindings,
                   Stream stream);

}  // namespace tilewright::cuda
