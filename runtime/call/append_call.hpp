#pragma once

#include "../../templates/abi/append.hpp"
#include "../api/attention.hpp"
#include "plan_state.hpp"

namespace tilewright {

/// Checks the tensors of Attention::append against the spec, the plan and one another. Kernels take
/// what it returns, with pages, but without what the plan's memory holds. Without rows or pages
/// there is nothing to do.
/// @param plan null: the new rows have slots
/// @throws Error with code tensor, usage
abi::AppendArguments resolve_append(const Spec& spec, const NewRows& rows, const TensorView& k,
                                    const TensorView& v, const PlanState* plan);

/// Whether a call from resolve_append copies anything.
inline bool has_work(const abi::AppendArguments& call) {
  return call.rows > 0 && call.pages.pages > 0;
}

}  // namespace tilewright
