#pragma once

#include "../api/attention.hpp"

namespace tilewright {

/// What Attention::output_shapes gives.
/// @throws Error with code tensor as validate(shape); with code usage for the other kind of layout
OutputShapes output_shapes(const Spec& spec, const Shape& shape);
OutputShapes output_shapes(const Spec& spec, const PackedShape& shape);

}  // namespace tilewright
