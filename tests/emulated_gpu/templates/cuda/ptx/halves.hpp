#pragma once

#include "cuda/language.hpp"

// In place of templates/cuda/ptx/halves.hpp, as GPUs before sm_89 have it.

namespace tw_kernel {

template <typename Operation>
TW_INLINE unsigned for_each_half(const Operation& operation) {
  unsigned result = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    const auto bits = __builtin_bit_cast(unsigned short, static_cast<_Float16>(operation(shift)));
    result |= static_cast<unsigned>(bits) << shift;
  }
  return result;
}
TW_INLINE double half_at(unsigned halves, int shift) {
  return static_cast<double>(
      __builtin_bit_cast(_Float16, static_cast<unsigned short>(halves >> shift)));
}

TW_INLINE unsigned multiply_halves(unsigned a, unsigned b) {
  return for_each_half([&](int at) { return half_at(a, at) * half_at(b, at); });
}
TW_INLINE unsigned add_halves(unsigned a, unsigned b) {
  return for_each_half([&](int at) { return half_at(a, at) + half_at(b, at); });
}
// In double neither the product nor the sum of these is rounded.
TW_INLINE unsigned multiply_add_halves(unsigned a, unsigned b, unsigned c) {
  return for_each_half([&](int at) { return half_at(a, at) * half_at(b, at) + half_at(c, at); });
}

// The sum of these is a number of bf16.
TW_INLINE unsigned multiply_add_bfloats(unsigned a, unsigned b, unsigned c) {
  const auto bfloat_at = [](unsigned bfloats, int shift) {
    return __builtin_bit_cast(float, bfloats >> shift << 16);
  };
  unsigned result = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    const float sum = bfloat_at(a, shift) * bfloat_at(b, shift) + bfloat_at(c, shift);
    result |= __builtin_bit_cast(unsigned, sum) >> 16 << shift;
  }
  return result;
}

TW_INLINE unsigned and_or(unsigned a, unsigned b, unsigned c) {
  return (a & b) | c;
}

struct FourHalves {
  unsigned low, high;
};

constexpr bool kHasE4M3 = false;
TW_INLINE FourHalves halves_of_e4m3(unsigned) {
  return {};
}

}  // namespace tw_kernel
