#pragma once

#include "abi/cpu.hpp"
#include "cpu/inline.hpp"
#include "cpu/scale_value.hpp"
#include "interpretations/checked.hpp"
#include "snippet/snippets.hpp"

// As evaluate_scale.hpp, with what the checked interpretation finds. What had to be abandoned is 1.

namespace tw_kernel {

TW_INLINE void evaluate_scale(const tilewright::abi::SnippetArguments& arguments, int which, int b,
                              int h, int first, int count, float* values) {
  const tw_snippet::tw_State state = tw_snippet::tw_make_state(arguments);
  const int h_kv = h / (arguments.num_q_heads / arguments.num_kv_heads);
  const bool is_of_kv = which == tilewright::abi::kKScale || which == tilewright::abi::kVScale;
  for (int i = 0; i < count; ++i) {
    const int q_idx = first + i + arguments.q_offset, kv_idx = first + i + arguments.kv_offset;
    values[i] = 1;
    tw_snippet::tw_run(which,
                       [&] { values[i] = scale_value(state, which, b, h, h_kv, q_idx, kv_idx); });
    tw_snippet::tw_finish_element(b, is_of_kv ? h_kv : h, q_idx, kv_idx, true);
  }
}

}  // namespace tw_kernel
