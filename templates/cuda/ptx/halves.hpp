#pragma once

#include "cuda/language.hpp"

// Arithmetic on two 16-bit floating numbers in a register (sm_80), rounded to nearest even, and the
// conversion of two 8-bit ones to them.

namespace tw_kernel {

TW_INLINE unsigned multiply_halves(unsigned a, unsigned b) {
  unsigned product;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  return product;
}

TW_INLINE unsigned add_halves(unsigned a, unsigned b) {
  unsigned sum;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
  return sum;
}

// a b + c, rounded once.
TW_INLINE unsigned multiply_add_halves(unsigned a, unsigned b, unsigned c) {
  unsigned sum;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
}

// The same of bf16.
TW_INLINE unsigned multiply_add_bfloats(unsigned a, unsigned b, unsigned c) {
  unsigned sum;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
}

// (a & b) | c in one instruction, for which the compiler takes two where b and c are constants.
TW_INLINE unsigned and_or(unsigned a, unsigned b, unsigned c) {
  unsigned bits;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(bits) : "r"(a), "r"(b), "r"(c));
  return bits;
}

// Four of them, in the order of their addresses.
struct FourHalves {
  unsigned low, high;
};

// Whether halves_of_e4m3 is there.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
constexpr bool kHasE4M3 = true;
// `four`: a number in each byte, the lowest one first. A conversion reads either half of a register, so that
// nothing is shifted.
TW_INLINE FourHalves halves_of_e4m3(unsigned four) {
  FourHalves halves;
  asm("{\n"
      ".reg .b16 low, high;\n"
      "mov.b32 {low, high}, %2;\n"
      "cvt.rn.f16x2.e4m3x2 %0, low;\n"
      "cvt.rn.f16x2.e4m3x2 %1, high;\n"
      "}"
      : "=r"(halves.low), "=r"(halves.high)
      : "r"(four));
  return halves;
}
#else
constexpr bool kHasE4M3 = false;
TW_INLINE FourHalves halves_of_e4m3(unsigned) {
  return {};
}
#endif

}  // namespace tw_kernel
