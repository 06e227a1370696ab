#pragma once

#include "cuda/language.hpp"

// Masks that have a condition have no proofs here, so that no branch stays undecided.

namespace tw_proved {

TW_INLINE bool tw_undecided() {
  __trap();
  return true;
}

#define TW_SEPARATE __forceinline__
#define TW_ROLLED _Pragma("unroll 1")

}  // namespace tw_proved
