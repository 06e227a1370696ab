#pragma once

#include "cpu/inline.hpp"
#include "cpu/vector.hpp"
#include "kernel/configuration.hpp"
#include "snippet/snippets.hpp"

// The snippets over one chunk of rows of a tile. The loop over lanes is what the compiler vectorises,
// with the snippets inlined.

namespace tw_kernel {

// Where a chunk of scores lies in the call.
struct ChunkPlace {
  int b;
  int h;
  int h_kv;
  int first_row;
  int last_row;  // the last row of the call: rows after it are computed as if they were it
  int q_offset;
  int first_kv_idx;
};

// s: [count][kLanes], scaled scores; on return after score_mod, -inf where mask_mod drops them.
template <bool kPartial>
TW_NOINLINE void modify_scores(const tw_snippet::tw_State& shared_state, const ChunkPlace& place,
                               int count, float* s) {
  // Copies, which stores to s cannot alias.
  const tw_snippet::tw_State state = shared_state;
  const int b = place.b, h = place.h, h_kv = place.h_kv;
  const int first_row = place.first_row, last_row = place.last_row;
  const int q_offset = place.q_offset, first_kv_idx = place.first_kv_idx;
  tw_snippet::tw_LaneLoads<kLanes> lane_loads;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int q_row = first_row + lane < last_row ? first_row + lane : last_row;
    lane_loads.load(lane, state, b, h, h_kv, q_row + q_offset, 0);
  }
  for (int kv = 0; kv < count; ++kv) {
    const int kv_idx = first_kv_idx + kv;
    const tw_snippet::tw_Loads shared_loads =
        tw_snippet::tw_load_shared(state, b, h, h_kv, 0, kv_idx);
    float* const row = s + kv * kLanes;
    asm volatile("");  // keeps the compiler from vectorising this loop instead of the inner one
#if defined(__clang__)
#pragma clang loop vectorize(enable) vectorize_width(kLanes) interleave(disable) unroll(disable)
#else
#pragma GCC ivdep
#pragma GCC unroll 1
#endif
    for (int lane = 0; lane < kLanes; ++lane) {
      const int q_row = first_row + lane < last_row ? first_row + lane : last_row;
      const int q_idx = q_row + q_offset;
      const tw_snippet::tw_Loads loads = lane_loads.with_lane(shared_loads, lane);
      float score = row[lane];
      if (kHasScoreMod) {
        score = tw_snippet::tw_score_mod(state, loads, score, b, h, h_kv, q_idx, kv_idx);
      }
      if (kPartial) {
        score = tw_snippet::tw_mask_mod(state, loads, b, h, h_kv, q_idx, kv_idx)
                    ? score
                    : -kInfinity;
      }
      row[lane] = score;
    }
  }
}

}  // namespace tw_kernel
