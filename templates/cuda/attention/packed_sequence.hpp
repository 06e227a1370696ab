#pragma once

#include "abi/plan.hpp"
#include "cuda/attention/planned_rows.hpp"
#include "kernel/configuration.hpp"
#include "snippet/snippets.hpp"

// The sequences of a call with packed k and v.

namespace tw_kernel {

struct PlacedSequence : PlannedRows {
  __forceinline__ void take(const SnippetArguments&, const tilewright::abi::PlannedSequence& sequence,
                            int) {
    rows = sequence;
  }

  __forceinline__ tw_snippet::tw_State state(const SnippetArguments& call) const {
    return tw_snippet::tw_make_state(call, rows);
  }
};

}  // namespace tw_kernel
