#pragma once

#include "attention/dropout.hpp"
#include "cuda/attention/quad_draws.hpp"
#include "cuda/backward/element_inputs.hpp"
#include "cuda/language.hpp"
#include "kernel/engine.hpp"

// Dropout in the backward pass: the weights that met V, and the products dO V^T of their elements, are multiplied by
// what forward multiplied them by, or are 0.

namespace tw_kernel {

// Of a thread's elements of one tile: bit j of word i where dropout keeps element (i, j).
struct DroppedProducts {
  static constexpr bool kDrops = true;
  unsigned word[kRows];
  float factor;

  __forceinline__ float dropped(int i, int j, float x) const {
    return (word[i] >> j & 1u) != 0 ? x * factor : 0.0f;
  }
};

// Nothing is drawn yet. Where a block owns rows, kv_idx is along the columns that pass by.
template <bool kOwnsRows>
TW_INLINE QuadDraws<kOwnsRows> start_draws(const ElementInputs& inputs, int first_passing) {
  const int first_kv = kOwnsRows ? first_passing : inputs.first_own;
  const int first_q = kOwnsRows ? inputs.first_own : first_passing;
  return QuadDraws<kOwnsRows>(find_dropout(inputs.state, inputs.b, inputs.h, inputs.h_kv),
                              first_kv + inputs.kv_offset(), first_q + inputs.q_offset(), inputs.h, inputs.b);
}

template <bool kOwnsRows>
TW_INLINE DroppedProducts finish_draws(const ElementInputs& inputs, QuadDraws<kOwnsRows>& draws) {
  DroppedProducts products;
  draws.finish(products.word);
  products.factor = keeping_factor(drop_probability(inputs.state, inputs.b, inputs.h, inputs.h_kv));
  return products;
}

}  // namespace tw_kernel
