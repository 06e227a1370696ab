#pragma once

#include "cuda/language.hpp"

// In place of templates/cuda/ptx/store_transposed.hpp.

namespace tw_kernel {

TW_INLINE void store_matrices_transposed(unsigned to, const unsigned (&matrices)[4]) {
  if (to % 16 != 0) emulated_core->fail("stmatrix: an address is no multiple of 16");
  const auto rows = emulated::exchange(to);
  const unsigned lane = threadIdx.x % 32;
  for (int i = 0; i < 4; ++i) {
    for (unsigned k = 0; k < 2; ++k) {
      const auto element = static_cast<unsigned short>(matrices[i] >> 16 * k);
      const unsigned at = rows.of[8 * i + lane % 4 * 2 + k] + lane / 4 * 2;
      std::memcpy(emulated::at_shared(at), &element, 2);
      emulated::mark_unfenced(at);
    }
  }
  __syncwarp();
}

}  // namespace tw_kernel
