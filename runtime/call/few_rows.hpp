#pragma once

#include "../../generator/spec/spec.hpp"
#include "../api/shape.hpp"

namespace tilewright {

/// Whether a call's rows are so few that a kernel for decoding serves them: a packed call's where
/// each sequence has shape.q_len, a dense one's where AttentionOptions::decode is set.
bool are_decoded(const Spec& spec, const Shape& shape);

/// Whether the kernels that AttentionOptions::decode adds serve dense calls of this shape: for
/// tools that know the shape before they make an Attention.
bool has_few_rows(const Spec& spec, const Shape& shape);

}  // namespace tilewright
