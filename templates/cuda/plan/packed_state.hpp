#pragma once

#include "abi/plan.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "snippet/snippets.hpp"

// A sequence with packed k and v as a warp decides its tiles.

namespace tw_kernel {

using tilewright::abi::SnippetArguments;

struct WarpSequence : tilewright::abi::TiledSequence {};

TW_INLINE WarpSequence warp_sequence(const tilewright::abi::TiledSequence& planned,
                                     const SnippetArguments&, int) {
  return {planned};
}

TW_INLINE tw_snippet::tw_State state_of(const SnippetArguments& call, const WarpSequence& sequence) {
  return tw_snippet::tw_make_state(call, sequence);
}

}  // namespace tw_kernel
