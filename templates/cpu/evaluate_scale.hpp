#pragma once

#include "abi/cpu.hpp"
#include "cpu/inline.hpp"
#include "kernel/interpretation.hpp"
#include "snippet/scales.hpp"
#include "snippet/snippets.hpp"

// The scales, the sink and dropout alone, for the reference.

namespace tw_kernel {

// values: [count], from row or column `first` on. which: q_scale, k_scale, v_scale, sink, out_scale, dropout
TW_INLINE void evaluate_scale(const tilewright::abi::SnippetArguments& arguments, int which, int b,
                              int h, int first, int count, tw_snippet::tw_real* values) {
  const tw_snippet::tw_State state = tw_snippet::tw_make_state(arguments);
  const int h_kv = h / (arguments.num_q_heads / arguments.num_kv_heads);
  for (int i = 0; i < count; ++i) {
    const int q_idx = first + i + arguments.q_offset, kv_idx = first + i + arguments.kv_offset;
    values[i] = which == 0   ? tw_snippet::tw_q_scale(state, b, h, h_kv, q_idx)
                : which == 1 ? tw_snippet::tw_k_scale(state, b, h, h_kv, kv_idx)
                : which == 2 ? tw_snippet::tw_v_scale(state, b, h, h_kv, kv_idx)
                : which == 3 ? tw_snippet::tw_sink(state, b, h, h_kv, q_idx)
                : which == 4 ? tw_snippet::tw_out_scale(state, b, h, h_kv, 0)
                             : tw_snippet::tw_dropout(state, b, h, h_kv, 0);
  }
}

}  // namespace tw_kernel
