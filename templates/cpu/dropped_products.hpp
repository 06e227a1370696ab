#pragma once

#include "attention/dropout.hpp"
#include "attention/philox.hpp"
#include "cpu/differentiate.hpp"
#include "cpu/inline.hpp"
#include "cpu/vector.hpp"
#include "kernel/configuration.hpp"
#include "snippet/snippets.hpp"

// Dropout in the backward pass: the weights that met V, and the products dO V^T of their elements, are multiplied by
// what forward multiplied them by, or are 0.

namespace tw_kernel {

// Of one chunk of lanes of a tile.
struct Draws {
  static constexpr int kMostQuads = kLanes / 4 + 1;  // that kLanes columns from any on lie in

  Vector factors[kKvTile];
  unsigned words[kKvTile * kMostQuads * 4];
};

TW_INLINE void keep_words(const Dropout& dropout, const unsigned* words, float factor, Vector& factors) {
  for (int lane = 0; lane < kLanes; ++lane) factors[lane] = dropout.keeps(words[lane]) ? factor : 0.0f;
}

// Lanes are rows of q: four rows of the tile share the words of a lane.
TW_INLINE void draw_columns(const Dropout& dropout, const BackwardPlace& place, int count, float factor,
                            Draws& draws) {
  const int first_q_idx = place.first_row + place.q_offset, h = place.h, b = place.b;
  for (int i = 0; i < count;) {
    const int kv_idx = place.first_column + place.kv_offset + i;
    unsigned* const words = draws.words;
    for (int lane = 0; lane < kLanes; ++lane) {
      const PhiloxWords quad = draw_quad(dropout, kv_idx >> 2, first_q_idx + lane, h, b);
      words[lane] = quad.x;
      words[kLanes + lane] = quad.y;
      words[2 * kLanes + lane] = quad.z;
      words[3 * kLanes + lane] = quad.w;
    }
    for (int word = kv_idx & 3; word < 4 && i < count; ++word, ++i) {
      keep_words(dropout, words + word * kLanes, factor, draws.factors[i]);
    }
  }
}

// Lanes are columns: a row of the tile has the words of all quads that they lie in, one after another.
TW_INLINE void draw_rows(const Dropout& dropout, const BackwardPlace& place, int count, float factor,
                         Draws& draws) {
  constexpr int kQuads = Draws::kMostQuads;
  const int first_kv_idx = place.first_column + place.kv_offset, h = place.h, b = place.b;
  const int first_q_idx = place.first_row + place.q_offset;
  unsigned* const words = draws.words;
  for (int i = 0; i < count * kQuads; ++i) {
    const PhiloxWords quad =
        draw_quad(dropout, (first_kv_idx >> 2) + i % kQuads, first_q_idx + i / kQuads, h, b);
    words[4 * i] = quad.x;
    words[4 * i + 1] = quad.y;
    words[4 * i + 2] = quad.z;
    words[4 * i + 3] = quad.w;
  }
  for (int i = 0; i < count; ++i) {
    keep_words(dropout, words + 4 * kQuads * i + (first_kv_idx & 3), factor, draws.factors[i]);
  }
}

template <bool kLanesAreRows>
TW_NOINLINE void draw_chunk(const tw_snippet::tw_State& state, const BackwardPlace& place, int count,
                            Draws& draws) {
  const Dropout dropout = find_dropout(state, place.b, place.h, place.h_kv);
  const float factor = keeping_factor(drop_probability(state, place.b, place.h, place.h_kv));
  if (kLanesAreRows) {
    draw_columns(dropout, place, count, factor, draws);
  } else {
    draw_rows(dropout, place, count, factor, draws);
  }
}

// x: of row i of the tile.
TW_INLINE Vector dropped(const Draws& draws, int i, Vector x) {
  return draws.factors[i] == 0.0f ? Vector{} : x * draws.factors[i];
}

}  // namespace tw_kernel
