#pragma once

#include "cuda/float16.hpp"
#include "cuda/language.hpp"

// C[16][8] += A[16][16] * B[16][8] by one warp (sm_80).
// With r = l / 4 and c = 2 (l % 4), lane l holds
//   a[0]: A[r][c, c+1]    a[1]: A[r+8][c, c+1]    a[2]: A[r][c+8, c+9]    a[3]: A[r+8][c+8, c+9]
//   b0:   B[c, c+1][r]    b1:   B[c+8, c+9][r]
//   c0:   C[r][c]         c1:   C[r][c+1]         c2:   C[r+8][c]         c3:   C[r+8][c+1]

namespace tw_kernel {

template <typename Element>
TW_INLINE void multiply_add(float& c0, float& c1, float& c2, float& c3, const unsigned (&a)[4],
                            unsigned b0, unsigned b1);

template <>
void multiply_add<Half>(float& c0, float& c1, float& c2, float& c3, const unsigned (&a)[4],
                        unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{ %0, %1, %2, %3}, { %4, %5, %6, %7}, { %8, %9}, { %0, %1, %2, %3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
void multiply_add<BFloat16>(float& c0, float& c1, float& c2, float& c3, const unsigned (&a)[4],
                            unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{ %0, %1, %2, %3}, { %4, %5, %6, %7}, { %8, %9}, { %0, %1, %2, %3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// C[16][8] += A[16][8] * B[8][8] of TF32: of float32 numbers the tensor cores see the upper 19 bits. With r = l / 4 and c = l % 4, lane l holds
//   a[0]: A[r][c]    a[1]: A[r+8][c]    a[2]: A[r][c+4]    a[3]: A[r+8][c+4]
//   b0:   B[c][r]    b1:   B[c+4][r]
// and of C the same as above.
template <>
void multiply_add<float>(float& c0, float& c1, float& c2, float& c3, const unsigned (&a)[4],
                         unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{ %0, %1, %2, %3}, { %4, %5, %6, %7}, { %8, %9}, { %0, %1, %2, %3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace tw_kernel
