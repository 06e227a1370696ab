// What gcc's dialect has and NVRTC's lacks, so that snippets and the files of math/ read the same
// for every target. NVRTC knows CUDA's own functions without any header.

#define TW_INLINE static __forceinline__
#define TW_MEMBER __forceinline__

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
#undef TW_BUILTIN

namespace tw_kernel {
constexpr float kInfinity = __builtin_inff();
constexpr float kLog2E = 1.44269504088896341f;
constexpr float kLn2 = 0.693147180559945309f;
}  // namespace tw_kernel

namespace tw_kernel {

// The thread's number, which the compiler cannot know to be the same each time. What is computed
// from it anew costs few instructions; kept over a loop it would cost registers, of which the
// accumulators leave hardly any.
template <int kThreads>
TW_INLINE unsigned thread_number() {
  unsigned number;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(number));
  __builtin_assume(number < kThreads);
  return number;
}

// An address in the block's shared memory, as PTX takes it.
TW_INLINE unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

}  // namespace tw_kernel
