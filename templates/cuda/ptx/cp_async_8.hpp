#pragma once

#include "cuda/language.hpp"

// As cp_async.hpp, in copies of 8 bytes.

namespace tw_kernel {

// Both addresses are multiples of 8.
TW_INLINE void copy_async_8(unsigned to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to), "l"(from) : "memory");
}

}  // namespace tw_kernel
