#pragma once

#include "cuda/mask/evaluate.hpp"
#include "kernel/configuration.hpp"
#include "kernel/undecided.hpp"
#include "mask/tile_range.hpp"
#include "interpretations/interval.hpp"
#include "snippet/proved.hpp"

// Classifies tiles by the interval interpretation, one thread many tiles at a time.

namespace tw_kernel {

template <typename Arguments, typename... Sequence>
__noinline__ Proof prove(const Arguments& arguments, const SnippetArguments& call, RowPlace place,
                         TileRange range, const Sequence&... sequence) {
  using tw_proved::tw_Int;
  tw_proved::tw_branches[threadIdx.x] = 0;
  const tw_proved::tw_Truth kept = tw_proved::tw_mask_mod(
      tw_proved::tw_make_state(call, arguments.tables, sequence...), place.b, place.h, place.h_kv,
      tw_Int::of(static_cast<long long>(range.first_q_idx),
                 static_cast<long long>(range.first_q_idx) + range.rows - 1, true),
      tw_Int::of(static_cast<long long>(range.first_kv_idx),
                 static_cast<long long>(range.first_kv_idx) + range.columns - 1, true));
  if (tw_proved::tw_branches[threadIdx.x] != 0 || !kept.is_decided()) return Proof::undecided;
  return kept.may_hold ? Proof::full : Proof::empty;
}

}  // namespace tw_kernel
