#pragma once

#include "cuda/language.hpp"

// Stores of transposed fragments (sm_90).

namespace tw_kernel {

// Four 8 x 8 matrices of 16-bit elements, as store_matrices has them (warpgroup.hpp), to shared memory
// transposed; lane l gives the address of row l % 8 of the transpose of matrix l / 8.
TW_INLINE void store_matrices_transposed(unsigned to, const unsigned (&matrices)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], { %1, %2, %3, %4};" ::"r"(to),
               "r"(matrices[0]), "r"(matrices[1]), "r"(matrices[2]), "r"(matrices[3])
               : "memory");
}

}  // namespace tw_kernel
