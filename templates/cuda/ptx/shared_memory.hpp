#pragma once

#include "cuda/language.hpp"

// Registers from and to shared memory, whose addresses are those of shared_address(). Floats lie at
// multiples of 4 bytes, two of them at multiples of 8, four of them, and 16 bytes, at multiples of 16.

namespace tw_kernel {

TW_INLINE float4 load_shared_4(unsigned from) {
  float4 x;
  asm volatile("ld.shared.v4.f32 { %0, %1, %2, %3}, [%4];"
               : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
               : "r"(from)
               : "memory");
  return x;
}
TW_INLINE float2 load_shared_2(unsigned from) {
  float2 x;
  asm volatile("ld.shared.v2.f32 { %0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(from) : "memory");
  return x;
}
TW_INLINE float load_shared(unsigned from) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
  return x;
}
TW_INLINE void store_shared(unsigned to, float x) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(x) : "memory");
}

// 16 bytes to registers, and from them.
TW_INLINE void load_shared_16(unsigned from, unsigned (&words)[4]) {
  asm volatile("ld.shared.v4.b32 { %0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(from)
               : "memory");
}
TW_INLINE void store_shared_16(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
  asm volatile("st.shared.v4.b32 [%0], { %1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

}  // namespace tw_kernel
