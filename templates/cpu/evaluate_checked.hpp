#pragma once

#include "abi/cpu.hpp"
#include "cpu/inline.hpp"
#include "interpretations/checked.hpp"
#include "snippet/snippets.hpp"

// As evaluate.hpp, element by element, with what the checked interpretation finds. An element whose snippet
// had to be abandoned keeps its score and counts as kept.

namespace tw_kernel {

using tilewright::abi::SnippetArguments;

TW_INLINE void evaluate_row(const SnippetArguments& arguments, int b, int h, int row,
                            const float* scores, float* modified, unsigned char* keep) {
  const tw_snippet::tw_State state = tw_snippet::tw_make_state(arguments);
  const int h_kv = h / (arguments.num_q_heads / arguments.num_kv_heads);
  const int q_idx = row + arguments.q_offset;
  for (int kv = 0; kv < arguments.kv_len; ++kv) {
    const int kv_idx = kv + arguments.kv_offset;
    keep[kv] = 1;
    tw_snippet::tw_run(tilewright::abi::kMaskMod, [&] {
      keep[kv] = tw_snippet::tw_mask_mod(state, {}, b, h, h_kv, q_idx, kv_idx);
    });
    modified[kv] = scores[kv];
    tw_snippet::tw_run(tilewright::abi::kScoreMod, [&] {
      modified[kv] = tw_snippet::tw_score_mod(state, {}, scores[kv], b, h, h_kv, q_idx, kv_idx);
    });
    tw_snippet::tw_finish_element(b, h, q_idx, kv_idx, keep[kv] != 0);
  }
}

}  // namespace tw_kernel
