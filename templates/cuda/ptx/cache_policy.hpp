#pragma once

#include "cuda/language.hpp"

// How long copies leave lines in the L2 cache (sm_80): an operand of those that take one.

namespace tw_kernel {

using CachePolicy = unsigned long long;

// Lines go before all others, so that what is read once displaces nothing that is read again, and nothing
// that has to be written back first.
TW_INLINE CachePolicy goes_first() {
  CachePolicy policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

}  // namespace tw_kernel
