#pragma once

#include "attention/one_byte.hpp"
#include "cpu/inline.hpp"

// How a CPU reads numbers of one byte.

namespace tw_kernel {

TW_INLINE float to_float(Float8E4M3 x) {
  const unsigned magnitude = x.bits & 0x7fu;
  const unsigned sign = static_cast<unsigned>(x.bits & 0x80u) << 24;
  // 2^-6 + subnormal, less 2^-6: exact, and never a float subnormal, which may be slow or flushed.
  const float subnormal = __builtin_bit_cast(float, (magnitude << 20) + 0x3c800000u) -
                          __builtin_bit_cast(float, 0x3c800000u);
  const unsigned normal = magnitude == 0x7fu ? 0x7fc00000u : (magnitude << 20) + 0x3c000000u;
  const unsigned bits = magnitude < 0x8u ? __builtin_bit_cast(unsigned, subnormal) : normal;
  return __builtin_bit_cast(float, bits | sign);
}

TW_INLINE float to_float(Float8E5M2 x) {
  const unsigned magnitude = x.bits & 0x7fu;
  const unsigned sign = static_cast<unsigned>(x.bits & 0x80u) << 24;
  const float subnormal = __builtin_bit_cast(float, (magnitude << 21) + 0x38800000u) -
                          __builtin_bit_cast(float, 0x38800000u);
  const unsigned normal = (magnitude << 21) + (magnitude >= 0x7cu ? 0x70000000u : 0x38000000u);
  const unsigned bits = magnitude < 0x4u ? __builtin_bit_cast(unsigned, subnormal) : normal;
  return __builtin_bit_cast(float, bits | sign);
}

}  // namespace tw_kernel
