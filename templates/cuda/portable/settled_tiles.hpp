#pragma once

#include "cuda/language.hpp"

// Tiles that lie in shared memory as the products take them: nothing is left to do when they have arrived.

namespace tw_kernel {

constexpr bool kSettlesTiles = false;
TW_INLINE void settle_q(unsigned) {}
TW_INLINE void settle_k(unsigned) {}
TW_INLINE void settle_v(unsigned) {}

}  // namespace tw_kernel
