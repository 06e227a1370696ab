#pragma once

#include <span>

#include "../../templates/abi/merge.hpp"
#include "../api/attention.hpp"

namespace tilewright {

/// Checks the tensors of Attention::merge against the spec and one another. Kernels take what it
/// returns, but for lane_bits. Without rows all_rows is 0.
/// @throws Error with code tensor, usage
abi::MergeArguments resolve_merge(const Spec& spec, std::span<const Part> parts,
                                  const TensorView& out, const std::optional<TensorView>& lse);

}  // namespace tilewright
