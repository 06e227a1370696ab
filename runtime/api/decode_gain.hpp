#pragma once

#include "../../generator/spec/spec.hpp"
#include "device.hpp"
#include "shape.hpp"

namespace tilewright {

/// Whether the kernels that AttentionOptions::decode adds serve dense calls of this shape on the
/// device: for tools that know the shape before they make an Attention.
bool gains_from_decode(const Spec& spec, const Shape& shape, const Device& device);

/// Whether a call with many rows has too few q tiles for a Hopper GPU: from its sizes alone, with
/// the q tiles that most specs have.
bool has_few_q_tiles(const Shape& shape, const Device& device);

}  // namespace tilewright
