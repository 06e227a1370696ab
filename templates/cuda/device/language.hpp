#pragma once

// What gcc's dialect has and NVRTC's lacks, so that snippets and the files of math/ read the same
// for every target. NVRTC knows CUDA's own functions without any header.

#define TW_INLINE static __forceinline__
#define TW_MEMBER __forceinline__

namespace tw_kernel {

// The pointer, as a value whose making the compiler does not know.
TW_INLINE const char* as_one_value(const char* pointer) {
  asm("" : "+l"(pointer));
  return pointer;
}

}  // namespace tw_kernel

TW_INLINE constexpr float __builtin_inff() {
  return __builtin_bit_cast(float, 0x7f800000u);
}
TW_INLINE constexpr float __builtin_nanf(const char*) {
  return __builtin_bit_cast(float, 0x7fc00000u);
}
TW_INLINE float __builtin_sqrtf(float x) {
  return ::sqrtf(x);
}
TW_INLINE double __builtin_sqrt(double x) {
  return ::sqrt(x);
}
TW_INLINE float __builtin_floorf(float x) {
  return ::floorf(x);
}
TW_INLINE double __builtin_floor(double x) {
  return ::floor(x);
}
TW_INLINE float __builtin_ceilf(float x) {
  return ::ceilf(x);
}
TW_INLINE double __builtin_ceil(double x) {
  return ::ceil(x);
}
TW_INLINE float __builtin_fabsf(float x) {
  return ::fabsf(x);
}
TW_INLINE double __builtin_fabs(double x) {
  return ::fabs(x);
}
TW_INLINE float __builtin_truncf(float x) {
  return ::truncf(x);
}
TW_INLINE float __builtin_fmaf(float x, float y, float z) {
  return ::fmaf(x, y, z);
}
TW_INLINE float __builtin_fmodf(float x, float y) {
  return ::fmodf(x, y);
}
TW_INLINE double __builtin_fmod(double x, double y) {
  return ::fmod(x, y);
}
TW_INLINE float __builtin_powf(float x, float y) {
  return ::powf(x, y);
}
TW_INLINE double __builtin_pow(double x, double y) {
  return ::pow(x, y);
}

#define TW_BUILTIN(name)                         \
  TW_INLINE float __builtin_##name##f(float x) { \
    return ::name##f(x);                         \
  }                                              \
  TW_INLINE double __builtin_##name(double x) {  \
    return ::name(x);                            \
  }
TW_BUILTIN(exp)
TW_BUILTIN(exp2)
TW_BUILTIN(log)
TW_BUILTIN(log2)
TW_BUILTIN(tanh)
TW_BUILTIN(sin)
TW_BUILTIN(cos)
TW_BUILTIN(tan)
TW_BUILTIN(erf)
TW_BUILTIN(erfc)
TW_BUILTIN(log1p)
TW_BUILTIN(expm1)
#undef TW_BUILTIN
