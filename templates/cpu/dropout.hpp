#pragma once

#include "attention/dropout.hpp"
#include "attention/philox.hpp"
#include "cpu/inline.hpp"
#include "cpu/modify.hpp"
#include "cpu/vector.hpp"
#include "snippet/snippets.hpp"

// Dropout of a chunk of rows of a tile.

namespace tw_kernel {

// p: [count][kLanes], weights; those that are dropped become 0.
TW_NOINLINE void drop_weights(const tw_snippet::tw_State& state, const ChunkPlace& place, int count,
                              float* p) {
  const Dropout dropout = find_dropout(state, place.b, place.h, place.h_kv);
  const int first_q_idx = place.first_row + place.q_offset, h = place.h, b = place.b;
  unsigned words[4][kLanes];
  for (int kv = 0; kv < count;) {
    const int kv_idx = place.first_kv_idx + kv;
    for (int lane = 0; lane < kLanes; ++lane) {
      const PhiloxWords quad = draw_quad(dropout, kv_idx >> 2, first_q_idx + lane, h, b);
      words[0][lane] = quad.x;
      words[1][lane] = quad.y;
      words[2][lane] = quad.z;
      words[3][lane] = quad.w;
    }
    for (int i = kv_idx & 3; i < 4 && kv < count; ++i, ++kv) {
      float* const row = p + kv * kLanes;
      for (int lane = 0; lane < kLanes; ++lane) {
        row[lane] = dropout.keeps(words[i][lane]) ? row[lane] : 0.0f;
      }
    }
  }
}

// What a row of O, or kept weights, are multiplied by, if without dropout it were `factor`.
TW_INLINE float finish_dropout(const tw_snippet::tw_State& state, const ChunkPlace& place, float factor) {
  return factor * keeping_factor(drop_probability(state, place.b, place.h, place.h_kv));
}

}  // namespace tw_kernel
