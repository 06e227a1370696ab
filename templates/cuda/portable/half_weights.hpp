#pragma once

#include "cuda/language.hpp"
#include "cuda/portable/score_fragments.hpp"
#include "cuda/ptx/convert.hpp"
#include "kernel/configuration.hpp"

// P in 16 bits: it goes from the scores' registers straight into the second product.

namespace tw_kernel {

// P as the first operand of the second product: a score's accumulators are where that operand's
// elements must be, so nothing moves between lanes. Element: the type of V's elements there.
struct Weights {
  unsigned fragment[kKvTile / 16][kRowTiles][4];
};

template <typename Element = QElement>
TW_INLINE Weights make_weights(unsigned, const float (&p)[kRows][kColumns]) {
  Weights weights;
#pragma unroll
  for (int step = 0; step < kKvTile / 16; ++step) {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      const float(&upper)[kColumns] = p[2 * i];
      const float(&lower)[kColumns] = p[2 * i + 1];
      unsigned(&a)[4] = weights.fragment[step][i];
      a[0] = pack<Element>(upper[4 * step], upper[4 * step + 1]);
      a[1] = pack<Element>(lower[4 * step], lower[4 * step + 1]);
      a[2] = pack<Element>(upper[4 * step + 2], upper[4 * step + 3]);
      a[3] = pack<Element>(lower[4 * step + 2], lower[4 * step + 3]);
    }
  }
  return weights;
}

}  // namespace tw_kernel
