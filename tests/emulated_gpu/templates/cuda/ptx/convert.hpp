#pragma once

#include "cuda/float16.hpp"
#include "cuda/language.hpp"

// In place of templates/cuda/ptx/convert.hpp.

namespace tw_kernel {

TW_INLINE float to_float(Half x) {
  return static_cast<float>(__builtin_bit_cast(_Float16, x.bits));
}

TW_INLINE void from_float(float x, Half* out) {
  out->bits = __builtin_bit_cast(unsigned short, static_cast<_Float16>(x));
}
TW_INLINE void from_float(float x, BFloat16* out) {
  const unsigned bits = __float_as_uint(x);
  const bool is_nan = x != x;
  const unsigned rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  out->bits = is_nan ? 0x7fffu : static_cast<unsigned short>(rounded >> 16);
}

template <typename Element>
TW_INLINE unsigned pack(float low, float high) {
  Element pair[2];
  from_float(low, &pair[0]);
  from_float(high, &pair[1]);
  return pair[0].bits | static_cast<unsigned>(pair[1].bits) << 16;
}

TW_INLINE unsigned to_tf32(float x) {
  const unsigned bits = __float_as_uint(x);
  return x - x == 0.0f ? (bits + 0x1000u) & ~0x1fffu : bits;
}

}  // namespace tw_kernel
