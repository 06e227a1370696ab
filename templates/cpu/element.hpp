#pragma once

#include "cpu/inline.hpp"

// Element types in memory and their conversions. Everything is computed in float.

namespace tw_kernel {

struct Half {
  unsigned short bits;
};

struct BFloat16 {
  unsigned short bits;
};

// A truth in memory: any byte but 0.
struct Bool {
  unsigned char byte;
};

TW_INLINE float to_float(float x) { return x; }

TW_INLINE float to_float(BFloat16 x) {
  return __builtin_bit_cast(float, static_cast<unsigned>(x.bits) << 16);
}

TW_INLINE float to_float(Half x) {
  const unsigned magnitude = x.bits & 0x7fffu;
  const unsigned sign = static_cast<unsigned>(x.bits & 0x8000u) << 16;
  // 2^-14 + subnormal, less 2^-14: exact, and never a float subnormal, which may be slow or flushed.
  const float subnormal = __builtin_bit_cast(float, (magnitude << 13) + 0x38800000u) -
                          __builtin_bit_cast(float, 0x38800000u);
  const unsigned normal = (magnitude << 13) + (magnitude >= 0x7c00u ? 0x70000000u : 0x38000000u);
  const unsigned bits =
      magnitude < 0x400u ? __builtin_bit_cast(unsigned, subnormal) : normal;
  return __builtin_bit_cast(float, bits | sign);
}

// Integers stay integers.
TW_INLINE float to_number(float x) { return x; }
TW_INLINE float to_number(Half x) { return to_float(x); }
TW_INLINE float to_number(BFloat16 x) { return to_float(x); }
TW_INLINE int to_number(int x) { return x; }
TW_INLINE float to_number(double x) { return static_cast<float>(x); }
TW_INLINE int to_number(signed char x) { return x; }
TW_INLINE int to_number(unsigned char x) { return x; }
TW_INLINE int to_number(short x) { return x; }
TW_INLINE int to_number(unsigned short x) { return x; }
TW_INLINE long long to_number(unsigned x) { return x; }
TW_INLINE long long to_number(long long x) { return x; }
TW_INLINE int to_number(Bool x) { return x.byte != 0; }

TW_INLINE void from_float(float x, float* out) { *out = x; }

// Round to nearest, ties to even; NaN stays NaN.
TW_INLINE void from_float(float x, BFloat16* out) {
  const unsigned bits = __builtin_bit_cast(unsigned, x);
  const unsigned rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const unsigned quiet_nan = (bits >> 16) | 0x40u;
  out->bits = static_cast<unsigned short>(x != x ? quiet_nan : rounded);
}

TW_INLINE void from_float(float x, Half* out) {
  const unsigned bits = __builtin_bit_cast(unsigned, x);
  const unsigned magnitude = bits & 0x7fffffffu;
  // Adding 0.5 leaves the result's subnormal in the low bits, rounded by the addition itself.
  const unsigned subnormal =
      __builtin_bit_cast(unsigned, __builtin_bit_cast(float, magnitude) + 0.5f) - 0x3f000000u;
  const unsigned normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  unsigned half = magnitude < 0x38800000u ? subnormal : normal;
  half = magnitude >= 0x477ff000u ? 0x7c00u : half;
  half = magnitude > 0x7f800000u ? 0x7e00u : half;
  out->bits = static_cast<unsigned short>(half | ((bits >> 16) & 0x8000u));
}

template <int kCount, typename Element>
TW_INLINE void load_row(const Element* __restrict from, float* __restrict to) {
  for (int i = 0; i < kCount; ++i) to[i] = to_float(from[i]);
}

template <int kCount, typename Element>
TW_INLINE void store_row(const float* __restrict from, Element* __restrict to) {
  for (int i = 0; i < kCount; ++i) from_float(from[i], to + i);
}

}  // namespace tw_kernel
