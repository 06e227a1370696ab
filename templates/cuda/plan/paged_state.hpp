#pragma once

#include "abi/pages.hpp"
#include "abi/plan.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "snippet/snippets.hpp"

// A sequence whose k and v are in pages as a warp decides its tiles.

namespace tw_kernel {

using tilewright::abi::SnippetArguments;

struct WarpSequence : tilewright::abi::TiledSequence {
  tilewright::abi::SequencePages pages;
};

TW_INLINE WarpSequence warp_sequence(const tilewright::abi::TiledSequence& planned,
                                     const SnippetArguments& call, int b) {
  return {planned, tilewright::abi::pages_of_sequence(call.pages, planned.page_begin, b)};
}

TW_INLINE tw_snippet::tw_State state_of(const SnippetArguments& call, const WarpSequence& sequence) {
  return tw_snippet::tw_make_state(call, sequence, sequence.pages);
}

}  // namespace tw_kernel
