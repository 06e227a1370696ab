#pragma once

#include "cuda/attention/quad_draws.hpp"
#include "cuda/backward/dropped_products.hpp"
#include "cuda/backward/element_inputs.hpp"
#include "cuda/language.hpp"

namespace tw_kernel {

// What dropout keeps of a thread's elements of a tile, whose first row of q is first_passing. All is drawn while the
// warpgroup's products run on their own, whose registers draws do not touch.
TW_INLINE DroppedProducts draw_tile(const ElementInputs& inputs, int first_passing) {
  QuadDraws<false> draws = start_draws<false>(inputs, first_passing);
  draws.draw_side_by_side();
  return finish_draws(inputs, draws);
}

}  // namespace tw_kernel
