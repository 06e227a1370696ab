#pragma once

#include "abi/pages.hpp"
#include "abi/plan.hpp"
#include "cuda/attention/planned_rows.hpp"
#include "kernel/configuration.hpp"
#include "snippet/snippets.hpp"

// The sequences of a call whose k and v are in pages.

namespace tw_kernel {

struct PlacedSequence : PlannedRows {
  tilewright::abi::SequencePages pages;

  __forceinline__ void take(const SnippetArguments& call,
                            const tilewright::abi::PlannedSequence& sequence, int b) {
    rows = sequence;
    pages = tilewright::abi::pages_of_sequence(call.pages, sequence.page_begin, b);
  }

  __forceinline__ tw_snippet::tw_State state(const SnippetArguments& call) const {
    return tw_snippet::tw_make_state(call, rows, pages);
  }
};

}  // namespace tw_kernel
