#pragma once

#include "cuda/mask/evaluate.hpp"
#include "kernel/configuration.hpp"
#include "kernel/undecided.hpp"
#include "mask/prove_range.hpp"
#include "mask/tile_range.hpp"
#include "snippet/proved.hpp"

// Classifies tiles by the interval interpretation, one thread many tiles at a time.

namespace tw_kernel {

template <typename Arguments, typename... Sequence>
__noinline__ Proof prove(const Arguments& arguments, const SnippetArguments& call, RowPlace place,
                         TileRange range, const Sequence&... sequence) {
  tw_proved::tw_branches[threadIdx.x] = 0;
  const Proof proof =
      prove_range(tw_proved::tw_make_state(call, arguments.tables, sequence...), place, range);
  return tw_proved::tw_branches[threadIdx.x] != 0 ? Proof::undecided : proof;
}

}  // namespace tw_kernel
