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
struct Draws {
  unsigned word[kRows];
  float factor;

  __forceinline__ float dropped(int i, int j, float x) const {
    return (word[i] >> j & 1u) != 0 ? x * factor : 0.0f;
  }
};

template <bool kOwnsRows>
TW_INLINE Draws draw_elements(const ElementInputs& inputs, int first_passing) {
  const Dropout dropout = find_dropout(inputs.state, inputs.b, inputs.h, inputs.h_kv);
  const int own = inputs.first_own + (kOwnsRows ? inputs.q_offset() : inputs.kv_offset());
  const int passing = first_passing + (kOwnsRows ? inputs.kv_offset() : inputs.q_offset());
  Draws draws;
  draws.factor = keeping_factor(drop_probability(inputs.state, inputs.b, inputs.h, inputs.h_kv));
  if (kOwnsRows) {
    const auto q_idx = [own](int i) { return own + row_of(0) + row_offset(i); };
    draw_along_columns(dropout, passing, q_idx, inputs.h, inputs.b, draws.word);
  } else {
    draw_along_rows(dropout, own, passing, inputs.h, inputs.b, draws.word);
  }
  return draws;
}

}  // namespace tw_kernel
