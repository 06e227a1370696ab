#pragma once

#include "cuda/language.hpp"

// In place of templates/cuda/ptx/ldmatrix.hpp.

namespace tw_kernel {

template <bool kTransposed>
TW_INLINE void load_matrices_of_warp(unsigned row, unsigned (&m)[4]) {
  if (row % 16 != 0) emulated_core->fail("ldmatrix: an address is no multiple of 16");
  const auto rows = emulated::exchange(row);
  const unsigned lane = threadIdx.x % 32;
  for (int i = 0; i < 4; ++i) {
    unsigned short pair[2];
    for (int j = 0; j < 2; ++j) {
      const unsigned r = kTransposed ? lane % 4 * 2 + j : lane / 4;
      const unsigned column = kTransposed ? lane / 4 : lane % 4 * 2 + j;
      std::memcpy(&pair[j], emulated::at_shared(rows.of[8 * i + r]) + 2 * column, 2);
    }
    m[i] = pair[0] | static_cast<unsigned>(pair[1]) << 16;
  }
  __syncwarp();  // the instruction is one for all: no lane goes on to write what another reads
}

TW_INLINE void load_matrices(unsigned row, unsigned (&m)[4]) {
  load_matrices_of_warp<false>(row, m);
}
TW_INLINE void load_matrices_transposed(unsigned row, unsigned (&m)[4]) {
  load_matrices_of_warp<true>(row, m);
}

}  // namespace tw_kernel
