#pragma once

#include "cuda/attention/no_draws.hpp"
#include "cuda/backward/element_inputs.hpp"
#include "cuda/language.hpp"

// Without dropout nothing is added to a backward kernel. See dropped_products.hpp.

namespace tw_kernel {

struct DroppedProducts {
  static constexpr bool kDrops = false;
  __forceinline__ float dropped(int, int, float x) const { return x; }
};

template <bool kOwnsRows>
TW_INLINE NoDraws start_draws(const ElementInputs&, int) {
  return {};
}

TW_INLINE DroppedProducts finish_draws(const ElementInputs&, NoDraws) {
  return {};
}

}  // namespace tw_kernel
