#pragma once

#include "abi/cpu.hpp"
#include "cpu/inline.hpp"
#include "kernel/interpretation.hpp"
#include "snippet/snippets.hpp"

// The snippets over one row of scores, for the reference and for tests of the fast interpretations.

namespace tw_kernel {

using tilewright::abi::SnippetArguments;
using tw_snippet::tw_real;

TW_INLINE void evaluate_row(const SnippetArguments& arguments, int b, int h, int row,
                            const tw_real* scores, tw_real* modified, unsigned char* keep) {
  const tw_snippet::tw_State state = tw_snippet::tw_make_state(arguments);
  const int h_kv = h / (arguments.num_q_heads / arguments.num_kv_heads);
  const int q_idx = row + arguments.q_offset;
  for (int kv = 0; kv < arguments.kv_len; ++kv) {
    const int kv_idx = kv + arguments.kv_offset;
    modified[kv] = tw_snippet::tw_score_mod(state, {}, scores[kv], b, h, h_kv, q_idx, kv_idx);
    keep[kv] = tw_snippet::tw_mask_mod(state, {}, b, h, h_kv, q_idx, kv_idx);
  }
}

}  // namespace tw_kernel
