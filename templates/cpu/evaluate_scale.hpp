#pragma once

#include "abi/cpu.hpp"
#include "cpu/inline.hpp"
#include "cpu/scale_value.hpp"
#include "kernel/interpretation.hpp"
#include "snippet/snippets.hpp"

// The scales, the sink and dropout alone, for the reference.

namespace tw_kernel {

// values: [count], from row or column `first` on. which: a SnippetNumber
TW_INLINE void evaluate_scale(const tilewright::abi::SnippetArguments& arguments, int which, int b,
                              int h, int first, int count, tw_snippet::tw_real* values) {
  const tw_snippet::tw_State state = tw_snippet::tw_make_state(arguments);
  const int h_kv = h / (arguments.num_q_heads / arguments.num_kv_heads);
  for (int i = 0; i < count; ++i) {
    values[i] = scale_value(state, which, b, h, h_kv, first + i + arguments.q_offset,
                            first + i + arguments.kv_offset);
  }
}

}  // namespace tw_kernel
