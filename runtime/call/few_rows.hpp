#pragma once

#include "../../generator/spec/spec.hpp"
#include "../api/shape.hpp"

namespace tilewright {

/// Whether the kernels that AttentionOptions::decode adds serve dense calls of this shape: for
/// tools that know the shape before they make an Attention.
bool has_few_rows(const Spec& spec, const Shape& shape);

}  // namespace tilewright
