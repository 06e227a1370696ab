#pragma once

#include <array>
#include <string>

#include "../../templates/abi/quantise.hpp"
#include "../api/attention.hpp"
#include "plan_state.hpp"

namespace tilewright {

/// What a scale names that its tensor alone does not say, for each Operand, as in `k_scale names
/// b`; empty if a call of quantise needs neither a plan nor a shape.
std::array<std::string, 3> named_beyond_tensors(const Spec& spec);

/// A call of Attention::quantise whose tensors have been checked.
struct QuantiseCall {
  abi::QuantiseArguments arguments;  ///< without what the plan's memory holds
  Shape shape;          ///< what snippets and named dimensions see; 0 where it is not known
  std::int64_t blocks;  ///< of the kernel; 0: there is nothing to do
};

/// Checks the tensors of Attention::quantise against the spec, the plan or the shape, and one
/// another.
/// @param plan, shape at most one of them
/// @throws Error with code tensor, usage
QuantiseCall resolve_quantise(const Spec& spec, const TensorView& from, const TensorView& to,
                              const PlanState* plan, const Shape* shape, Operand which);

}  // namespace tilewright
