#pragma once

#include "attention/dropout.hpp"
#include "cuda/attention/modify.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/attention/quad_draws.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// Dropout of a thread's weights of one tile.

namespace tw_kernel {

// Which elements dropout keeps. They need no scores, so they are drawn before the tile's registers hold any.
using Draws = Kept;

// first: column of the tile
TW_INLINE Draws draw_tile(const SnippetInputs& inputs, int first) {
  const auto q_idx = [&inputs](int i) {
    return inputs.rows.first(*inputs.q_tile, i) + inputs.rows.offset(i) + inputs.q_offset;
  };
  Draws draws;
  draw_along_columns(find_dropout(inputs.state, inputs.b, inputs.h, inputs.h_kv), first + inputs.kv_offset,
                     q_idx, inputs.h, inputs.b, draws.word);
  return draws;
}

// p: weights that are summed already
TW_INLINE void drop_weights(const Draws& draws, float (&p)[kRows][kColumns]) { drop(draws, 0.0f, p); }

// What a row of O, or kept weights, are multiplied by, if without dropout it were `factor`.
TW_INLINE float finish_dropout(const SnippetArguments& call, const QTile& q_tile, float factor) {
  return factor * keeping_factor(drop_probability(q_tile.state(call), q_tile.b, q_tile.h, q_tile.h_kv));
}

}  // namespace tw_kernel
