#pragma once

#include "cuda/language.hpp"

// Four 8 x 8 matrices of 16-bit elements from shared memory to fragments (sm_75). Lanes 8i to 8i+7
// give the addresses of the 8 rows (16 bytes each) of matrix i, and lane l gets from each matrix
// the two elements in row l / 4, columns 2 (l % 4) and the next one; transposed, those in column l
// / 4.

namespace tw_kernel {

TW_INLINE void load_matrices(unsigned row, unsigned (&m)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 { %0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row));
}

TW_INLINE void load_matrices_transposed(unsigned row, unsigned (&m)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 { %0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row));
}

}  // namespace tw_kernel
