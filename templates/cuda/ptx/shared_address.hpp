#pragma once

#include "cuda/language.hpp"

// Addresses as PTX takes them.

namespace tw_kernel {

// An address in the block's shared memory, as PTX takes it.
TW_INLINE unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

}  // namespace tw_kernel
