#pragma once

#include "cuda/attention/dropout.hpp"
#include "cuda/attention/modify.hpp"
#include "cuda/language.hpp"

namespace tw_kernel {

// What dropout keeps of a thread's weights of a tile. All is drawn while the warpgroup's products run on their own,
// whose registers draws do not touch.
TW_INLINE Kept draw_tile(const SnippetInputs& inputs, int first) {
  Draws draws = start_draws(inputs, first);
  draws.draw_side_by_side();
  Kept kept;
  draws.finish(kept.word);
  return kept;
}

}  // namespace tw_kernel
