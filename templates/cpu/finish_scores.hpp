#pragma once

#include "cpu/inline.hpp"
#include "cpu/modify.hpp"
#include "kernel/configuration.hpp"
#include "kernel/scales.hpp"
#include "snippet/snippets.hpp"

// What turns q.k into the scores of a chunk of rows.

namespace tw_kernel {

// s: [count][kLanes], q.k times the call's scale; on return after scales and score_mod, -inf where mask_mod drops
// them. A kernel without a block mask asks mask_mod in every tile. first: column of the tile
TW_INLINE void finish_scores(const tw_snippet::tw_State& state, const ChunkPlace& place, int first, int count,
                             bool partial, float* s) {
  scale_scores(state, place, first, count, s);
  if (kHasMaskMod && partial) {
    modify_scores<kHasMaskMod>(state, place, count, s);
  } else if (kHasScoreMod) {
    modify_scores<kHasMaskMod && !kMasked>(state, place, count, s);
  }
}

}  // namespace tw_kernel
