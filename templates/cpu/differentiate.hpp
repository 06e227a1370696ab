#pragma once

#include "cpu/inline.hpp"
#include "cpu/vector.hpp"
#include "kernel/configuration.hpp"
#include "snippet/derivative.hpp"
#include "snippet/snippets.hpp"

// score_mod with its derivatives over one chunk of lanes of a tile. Lanes are rows of q, or columns.

namespace tw_kernel {

using tilewright::abi::GradientArgument;

// Where a chunk of scores lies in the call. Lanes and tile rows past the last one are computed as if
// they were it, and columns before the first likewise.
struct BackwardPlace {
  int b;
  int h;
  int h_kv;
  int first_row;
  int last_row;  // of the call
  int q_offset;
  int first_column;
  int last_column;  // of the call
  int kv_offset;
};

// The element of a lane and a tile row.
template <bool kLanesAreRows>
struct ElementOf {
  int q_idx;
  int kv_idx;

  TW_MEMBER ElementOf(const BackwardPlace& place, int lane, int tile_row) {
    const int row = place.first_row + (kLanesAreRows ? lane : tile_row);
    int column = place.first_column + (kLanesAreRows ? tile_row : lane);
    if (kPacked && !kLanesAreRows) column = column < 0 ? 0 : column;
    q_idx = (row < place.last_row ? row : place.last_row) + place.q_offset;
    kv_idx = (column < place.last_column ? column : place.last_column) + place.kv_offset;
  }
};

// s: [count][kLanes], scaled scores; on return after score_mod, -inf where mask_mod drops them.
// slope: becomes the derivative of score_mod by the score.
template <bool kPartial, bool kLanesAreRows>
TW_NOINLINE void differentiate_scores(const tw_snippet::tw_State& shared_state,
                                      const BackwardPlace& shared_place, int count, float* s,
                                      float* slope) {
  // Copies, which stores to s cannot alias.
  const tw_snippet::tw_State state = shared_state;
  const BackwardPlace place = shared_place;
  for (int tile_row = 0; tile_row < count; ++tile_row) {
    float* const row = s + tile_row * kLanes;
    float* const slopes = slope + tile_row * kLanes;
    asm volatile("");  // keeps the compiler from vectorising this loop instead of the inner one
#if defined(__clang__)
#pragma clang loop vectorize(enable) vectorize_width(kLanes) interleave(disable) unroll(disable)
#else
#pragma GCC ivdep
#pragma GCC unroll 1
#endif
    for (int lane = 0; lane < kLanes; ++lane) {
      const ElementOf<kLanesAreRows> at(place, lane, tile_row);
      float score = row[lane];
      float by_score = 1.0f;
      if (kHasScoreMod) {
        score = tw_snippet::tw_differentiate(state, score, place.b, place.h, place.h_kv, at.q_idx,
                                             at.kv_idx, by_score);
      }
      if (kPartial) {
        score = tw_snippet::tw_mask_mod(state, {}, place.b, place.h, place.h_kv, at.q_idx, at.kv_idx)
                    ? score
                    : -kInfinity;
      }
      row[lane] = score;
      slopes[lane] = by_score;
    }
  }
}

// Adds what each element of a chunk gives to the gradients of buffers and scalars, in a fixed order.
// s: [count][kLanes], scaled scores; dy: likewise, 0 where an element gives nothing.
TW_NOINLINE void add_gradients(const tw_snippet::tw_State& state, const BackwardPlace& place,
                               int count, const float* s, const float* dy,
                               const GradientArgument* gradients, double* sums) {
  for (int i = 0; i < count * kLanes; ++i) {
    if (dy[i] == 0.0f) continue;
    const ElementOf<true> at(place, i % kLanes, i / kLanes);
    tw_snippet::tw_add_gradients(state, s[i], place.b, place.h, place.h_kv, at.q_idx, at.kv_idx, dy[i],
                                 gradients, sums);
  }
}

}  // namespace tw_kernel
