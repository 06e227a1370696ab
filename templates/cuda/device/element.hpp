// Element types in memory and their conversions.

namespace tw_kernel {

struct Half {
  unsigned short bits;
};

struct BFloat16 {
  unsigned short bits;
};

TW_INLINE float to_float(float x) {
  return x;
}

TW_INLINE float to_float(Half x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}

TW_INLINE float to_float(BFloat16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}

// Integers stay integers.
TW_INLINE float to_number(float x) {
  return x;
}
TW_INLINE float to_number(Half x) {
  return to_float(x);
}
TW_INLINE float to_number(BFloat16 x) {
  return to_float(x);
}
TW_INLINE int to_number(int x) {
  return x;
}
TW_INLINE int to_number(unsigned char x) {
  return x;
}
TW_INLINE long long to_number(long long x) {
  return x;
}

// Global memory that no kernel writes while this one runs.
template <typename Element>
TW_INLINE Element load_read_only(const Element* from) {
  return __ldg(from);
}
TW_INLINE Half load_read_only(const Half* from) {
  return {__ldg(&from->bits)};
}
TW_INLINE BFloat16 load_read_only(const BFloat16* from) {
  return {__ldg(&from->bits)};
}

// Round to nearest, ties to even; too great a number becomes infinite, NaN stays NaN.
TW_INLINE void from_float(float x, float* out) {
  *out = x;
}
TW_INLINE void from_float(float x, Half* out) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out->bits) : "f"(x));
}
TW_INLINE void from_float(float x, BFloat16* out) {
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out->bits) : "f"(x));
}

// Two 16-bit numbers in a register, `low` in the low half: the lower address, the lower column.
template <typename Element>
TW_INLINE unsigned pack(float low, float high);

template <>
unsigned pack<Half>(float low, float high) {
  unsigned packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

template <>
unsigned pack<BFloat16>(float low, float high) {
  unsigned packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// Two neighbouring numbers of a row.
TW_INLINE void store_pair(float low, float high, float* out) {
  *reinterpret_cast<float2*>(out) = {low, high};
}
template <typename Element>
TW_INLINE void store_pair(float low, float high, Element* out) {
  *reinterpret_cast<unsigned*>(out) = pack<Element>(low, high);
}

}  // namespace tw_kernel
