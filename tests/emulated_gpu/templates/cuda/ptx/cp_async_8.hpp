#pragma once

#include "cuda/language.hpp"

// In place of templates/cuda/ptx/cp_async_8.hpp. A copy happens when it is waited for, no sooner.

namespace tw_kernel {

TW_INLINE void copy_async_8(unsigned to, const void* from) {
  if (to % 8 != 0 || reinterpret_cast<unsigned long long>(from) % 8 != 0) {
    emulated_core->fail("cp.async: an address is no multiple of 8");
  }
  emulated::thread().copies.push_back([=] { std::memcpy(emulated::at_shared(to), from, 8); });
}

}  // namespace tw_kernel
