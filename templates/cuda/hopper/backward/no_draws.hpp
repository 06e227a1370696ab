#pragma once

#include "cuda/backward/element_inputs.hpp"
#include "cuda/backward/undropped_products.hpp"
#include "cuda/language.hpp"

namespace tw_kernel {

// Without dropout nothing is drawn. See draws.hpp.
TW_INLINE DroppedProducts draw_tile(const ElementInputs&, int) { return {}; }

}  // namespace tw_kernel
