#pragma once

#include "kernel/language.hpp"
#include "mask/tile_range.hpp"
#include "interpretations/interval.hpp"
#include "snippet/proved.hpp"

// What the interval interpretation says of the mask on a range of elements, where it meets no condition that it
// cannot decide.

namespace tw_kernel {

TW_INLINE Proof prove_range(const tw_proved::tw_State& state, const RowPlace& place,
                            const TileRange& range) {
  using tw_proved::tw_Int;
  const tw_proved::tw_Truth kept = tw_proved::tw_mask_mod(
      state, place.b, place.h, place.h_kv,
      tw_Int::of(static_cast<long long>(range.first_q_idx),
                 static_cast<long long>(range.first_q_idx) + range.rows - 1, true),
      tw_Int::of(static_cast<long long>(range.first_kv_idx),
                 static_cast<long long>(range.first_kv_idx) + range.columns - 1, true));
  if (!kept.is_decided()) return Proof::undecided;
  return kept.may_hold ? Proof::full : Proof::empty;
}

}  // namespace tw_kernel
