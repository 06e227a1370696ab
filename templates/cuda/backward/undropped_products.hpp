#pragma once

#include "cuda/backward/element_inputs.hpp"
#include "cuda/language.hpp"

// Without dropout nothing is added to a backward kernel. See dropped_products.hpp.

namespace tw_kernel {

struct Draws {
  __forceinline__ float dropped(int, int, float x) const { return x; }
};

template <bool kOwnsRows>
TW_INLINE Draws draw_elements(const ElementInputs&, int) {
  return {};
}

}  // namespace tw_kernel
