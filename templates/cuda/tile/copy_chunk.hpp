#pragma once

#include "cuda/language.hpp"
#include "cuda/ptx/cp_async.hpp"

namespace tw_kernel {

// Copies the first `bytes` of a row's 16, and zeros after them. A class of rows may overload it, to say how its rows
// are copied.
template <typename Rows>
TW_INLINE void copy_chunk(const Rows&, unsigned to, const void* from, int bytes) {
  copy_async_up_to_16(to, from, bytes);
}

}  // namespace tw_kernel
