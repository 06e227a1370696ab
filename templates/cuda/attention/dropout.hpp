#pragma once

#include "attention/dropout.hpp"
#include "cuda/attention/modify.hpp"
#include "cuda/attention/place.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"
#include "snippet/snippets.hpp"

// Dropout of a thread's weights of one tile.

namespace tw_kernel {

// Which elements dropout keeps. They need no scores, so they are drawn before the tile's registers hold any.
using Draws = Kept;

// first: column of the tile
TW_INLINE Draws draw_tile(const SnippetInputs& scene, int first) {
  const Dropout dropout = find_dropout(scene.state, scene.b, scene.h, scene.h_kv);
  const int column = first + column_of(0) + scene.kv_offset;
  PhiloxWords words[kRows];
  int quad = 0;  // of four columns, that `words` are of
  Draws draws = {};
#pragma unroll 1
  for (int j = 0; j < kColumns; ++j) {
    const int kv_idx = column + column_offset(j);
    const bool is_new = j == 0 || kv_idx >> 2 != quad;
    quad = kv_idx >> 2;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int row = scene.rows.first(*scene.place, i) + scene.rows.offset(i);
      if (is_new) words[i] = draw_quad(dropout, quad, row + scene.q_offset, scene.h, scene.b);
      const bool keeps = dropout.keeps(words[i].at(kv_idx & 3));
      draws.word[i] |= static_cast<unsigned>(keeps) << j;
    }
  }
  return draws;
}

// p: weights that are summed already
TW_INLINE void drop_weights(const Draws& draws, float (&p)[kRows][kColumns]) { drop(draws, 0.0f, p); }

// factor: what kept weights, or a row of O, are multiplied by in the end.
TW_INLINE void finish_dropout(const SnippetArguments& call, const Place& place, float& factor) {
  factor *= keeping_factor(drop_probability(place.state(call), place.b, place.h, place.h_kv));
}

}  // namespace tw_kernel
