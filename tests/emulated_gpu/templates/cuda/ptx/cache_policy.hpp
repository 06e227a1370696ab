#pragma once

#include "cuda/language.hpp"

// In place of templates/cuda/ptx/cache_policy.hpp: no cache is emulated.

namespace tw_kernel {

using CachePolicy = unsigned long long;

TW_INLINE CachePolicy goes_first() {
  return 1;
}

}  // namespace tw_kernel
