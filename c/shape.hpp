#pragma once

#include "c/tilewright.h"
#include "tilewright.hpp"

namespace tilewright::capi {

/// @throws Error with code usage where it is null or its size is not understood
Shape shape_of(const tw_shape* shape);
PackedShape shape_of(const tw_packed_shape* shape);

}  // namespace tilewright::capi
