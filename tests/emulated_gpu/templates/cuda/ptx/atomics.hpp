#pragma once

#include "cuda/language.hpp"

// In place of templates/cuda/ptx/atomics.hpp.

namespace tw_kernel {

TW_INLINE unsigned add_and_synchronise(unsigned* counter, unsigned x) {
  return __atomic_fetch_add(counter, x, __ATOMIC_ACQ_REL);
}

}  // namespace tw_kernel
