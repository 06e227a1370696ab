#pragma once

#include "../../generator/spec/spec.hpp"
#include "device.hpp"
#include "shape.hpp"

namespace tilewright {

/// Whether the kernels that AttentionOptions::decode adds serve dense calls of this shape on the
/// device: for tools that know the shape before they make an Attention.
bool gains_from_decode(const Spec& spec, const Shape& shape, const Device& device);

/// The same of a call with many rows, from its sizes alone: whether it has too few q tiles for a
/// Hopper GPU, as those of most specs are.
bool has_few_q_tiles(const Shape& shape, const Device& device);

}  // namespace tilewright
