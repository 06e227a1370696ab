#pragma once

#include "abi/cpu.hpp"
#include "cpu/inline.hpp"
#include "kernel/interpretation.hpp"
#include "snippet/scales.hpp"
#include "snippet/snippets.hpp"

namespace tw_kernel {

// Of a scale, the sink or dropout. which: a SnippetNumber
TW_INLINE tw_snippet::tw_real scale_value(const tw_snippet::tw_State& state, int which, int b,
                                          int h, int h_kv, int q_idx, int kv_idx) {
  switch (static_cast<tilewright::abi::SnippetNumber>(which)) {
    case tilewright::abi::kQScale:
      return tw_snippet::tw_q_scale(state, b, h, h_kv, q_idx);
    case tilewright::abi::kKScale:
      return tw_snippet::tw_k_scale(state, b, h, h_kv, kv_idx);
    case tilewright::abi::kVScale:
      return tw_snippet::tw_v_scale(state, b, h, h_kv, kv_idx);
    case tilewright::abi::kSink:
      return tw_snippet::tw_sink(state, b, h, h_kv, q_idx);
    case tilewright::abi::kOutScale:
      return tw_snippet::tw_out_scale(state, b, h, h_kv, 0);
    default:
      return tw_snippet::tw_dropout(state, b, h, h_kv, 0);
  }
}

}  // namespace tw_kernel
