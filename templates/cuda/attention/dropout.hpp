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

using Draws = QuadDraws<true>;

// Nothing is drawn yet. first: column of the tile
TW_INLINE Draws start_draws(const SnippetInputs& inputs, int first) {
  return Draws(find_dropout(inputs.state, inputs.b, inputs.h, inputs.h_kv), first + inputs.kv_offset,
               inputs.q_tile->first_row + inputs.q_offset, inputs.h, inputs.b);
}

// p: weights that are summed already
TW_INLINE void drop_weights(const Kept& kept, float (&p)[kRows][kColumns]) { drop(kept, 0.0f, p); }
TW_INLINE void drop_weights(Draws& draws, float (&p)[kRows][kColumns]) {
  Kept kept;
  draws.finish(kept.word);
  drop_weights(kept, p);
}

// What a row of O, or kept weights, are multiplied by, if without dropout it were `factor`.
TW_INLINE float finish_dropout(const SnippetArguments& call, const QTile& q_tile, float factor) {
  return factor * keeping_factor(drop_probability(q_tile.state(call), q_tile.b, q_tile.h, q_tile.h_kv));
}

}  // namespace tw_kernel
