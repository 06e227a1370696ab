#pragma once

#include "kernel/language.hpp"

// Numbers of one byte in memory, and how a float becomes one. Each device reads them in its own way.

namespace tw_kernel {

// Sign, 4 bits of exponent, 3 of mantissa. No infinity; 0x7f is NaN.
struct Float8E4M3 {
  unsigned char bits;
};

// The upper half of a Half.
struct Float8E5M2 {
  unsigned char bits;
};

struct Int8 {
  signed char value;
};

TW_INLINE float to_float(Int8 x) { return static_cast<float>(x.value); }

// Rounds to nearest, ties to even. Too great a finite number becomes the greatest, NaN stays NaN.
TW_INLINE void from_float(float x, Float8E4M3* out) {
  const unsigned bits = __builtin_bit_cast(unsigned, x), magnitude = bits & 0x7fffffffu;
  // Adding 2^14 leaves the result's subnormal in the low bits, rounded by the addition itself.
  const unsigned subnormal =
      __builtin_bit_cast(unsigned, __builtin_bit_cast(float, magnitude) + 16384.0f) - 0x46800000u;
  const unsigned normal = (magnitude - 0x3c000000u + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20;
  const unsigned rounded = magnitude < 0x3c800000u ? subnormal : normal;
  const unsigned code = rounded > 0x7eu ? 0x7eu : rounded;  // infinity too, which the format has not
  const unsigned any = magnitude > 0x7f800000u ? 0x7fu : code;
  out->bits = static_cast<unsigned char>(any | (bits >> 24 & 0x80u));
}

// The same; infinity stays infinity.
TW_INLINE void from_float(float x, Float8E5M2* out) {
  const unsigned bits = __builtin_bit_cast(unsigned, x), magnitude = bits & 0x7fffffffu;
  const unsigned subnormal =
      __builtin_bit_cast(unsigned, __builtin_bit_cast(float, magnitude) + 128.0f) - 0x43000000u;
  const unsigned normal = (magnitude - 0x38000000u + 0xfffffu + (magnitude >> 21 & 1u)) >> 21;
  const unsigned rounded = magnitude < 0x38800000u ? subnormal : normal;
  const unsigned code = rounded > 0x7bu ? 0x7bu : rounded;
  const unsigned any = magnitude > 0x7f800000u ? 0x7eu : magnitude == 0x7f800000u ? 0x7cu : code;
  out->bits = static_cast<unsigned char>(any | (bits >> 24 & 0x80u));
}

// Clamps to -128..127; NaN becomes 0.
TW_INLINE void from_float(float x, Int8* out) {
  const float low = x < -128.0f ? -128.0f : x;
  const float inside = low > 127.0f ? 127.0f : low;
  const float number = inside == inside ? inside : 0.0f;
  // Adding 1.5 2^23 leaves the whole number in the low bits, rounded by the addition itself.
  out->value =
      static_cast<signed char>(__builtin_bit_cast(unsigned, number + 12582912.0f) & 0xffu);
}

// For attention/stored_number.hpp: from_float keeps finite numbers finite.
TW_INLINE constexpr float greatest_stored(const Float8E4M3*) { return __builtin_inff(); }
TW_INLINE constexpr float greatest_stored(const Float8E5M2*) { return __builtin_inff(); }
TW_INLINE constexpr float greatest_stored(const Int8*) { return __builtin_inff(); }

}  // namespace tw_kernel
