#pragma once

// How functions of a kernel are compiled, and what gcc's dialect has and NVRTC's lacks. NVRTC knows
// CUDA's own functions without any header.

#define TW_INLINE static __forceinline__
#define TW_MEMBER __forceinline__

namespace tw_kernel {

// A pointer or number, as a value whose making the compiler does not know.
TW_INLINE const char* as_one_value(const char* pointer) {
  asm("" : "+l"(pointer));
  return pointer;
}

TW_INLINE unsigned as_one_value(unsigned x) {
  asm("" : "+r"(x));
  return x;
}

}  // namespace tw_kernel

TW_INLINE constexpr float __builtin_inff() {
  return __builtin_bit_cast(float, 0x7f800000u);
}
TW_INLINE constexpr float __builtin_nanf(const char*) {
  return __builtin_bit_cast(float, 0x7fc00000u);
}
