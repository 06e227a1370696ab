#pragma once

#include "attention/one_byte.hpp"
#include "cuda/element.hpp"
#include "cuda/float16.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/convert.hpp"
#include "cuda/ptx/halves.hpp"

// How a GPU reads numbers of one byte: each of them is one of f16's and of bf16's too.

namespace tw_kernel {

template <>
constexpr int kDigits<Float8E4M3> = 4;

// Four of them as four of f16. `four`: as they lie in memory.
template <typename Element>
TW_INLINE FourHalves halves_of(unsigned four);

template <>
FourHalves halves_of<Float8E5M2>(unsigned four) {
  return {__byte_perm(four, 0, 0x1404), __byte_perm(four, 0, 0x3424)};  // bytes 0, e0, 0, e1
}

// `upper`: two of e4m3, each in the upper byte of a half.
TW_INLINE unsigned shift_e4m3(unsigned upper) {
  // Exponent and mantissa a place lower: f16's own, but for a factor of 2^8.
  const unsigned scaled = (upper & 0x80008000u) | (upper & 0x7f007f00u) >> 1;
  const unsigned number = multiply_halves(scaled, 0x5c005c00u);  // 2^8
  // NaN comes out as 480. Times 1.78 2^15, 480 / 2^8 alone exceeds f16, and infinity times 0 is NaN.
  const unsigned probe = multiply_halves(scaled, 0x78907890u);  // 37376
  return multiply_add_halves(probe, 0, number);
}

template <>
FourHalves halves_of<Float8E4M3>(unsigned four) {
  if constexpr (kHasE4M3) return halves_of_e4m3(four);
  const FourHalves upper = halves_of<Float8E5M2>(four);
  return {shift_e4m3(upper.low), shift_e4m3(upper.high)};
}

template <>
FourHalves halves_of<Int8>(unsigned four) {
  // 1024 + 128 + x: its last eight digits are those of 128 + x.
  const unsigned biased = four ^ 0x80808080u;
  constexpr unsigned kThousand = 0x64646464u, kBias = 0xe480e480u;  // -1152
  return {add_halves(__byte_perm(biased, kThousand, 0x4140), kBias),
          add_halves(__byte_perm(biased, kThousand, 0x4342), kBias)};
}

template <typename To>
TW_INLINE unsigned widen_halves(unsigned halves) {
  if constexpr (sizeof(To) == sizeof(Half) && kDigits<To> == kDigits<Half>) return halves;
  const Half low = {static_cast<unsigned short>(halves)};
  const Half high = {static_cast<unsigned short>(halves >> 16)};
  return pack<To>(to_float(low), to_float(high));
}

// The same as four of `To`, a type of 16 bits.
template <typename To, typename Element>
TW_INLINE FourHalves widen(unsigned four) {
  const FourHalves halves = halves_of<Element>(four);
  return {widen_halves<To>(halves.low), widen_halves<To>(halves.high)};
}

// Without f16 in between. bf16 has 128 + the low seven digits of x, and what the eighth and the 128 take off.
template <>
FourHalves widen<BFloat16, Int8>(unsigned four) {
  constexpr unsigned kOne = 0x3f803f80u;
  const auto widen_two = [](unsigned two) {  // each in the lower byte of a half
    const unsigned digits = and_or(two, 0x007f007fu, 0x43004300u);  // 128 + them
    const unsigned taken = and_or(two, 0x00800080u, 0xc300c300u);   // -128, or -256 where x is negative
    return multiply_add_bfloats(digits, kOne, taken);
  };
  return {widen_two(__byte_perm(four, 0, 0x4140)), widen_two(__byte_perm(four, 0, 0x4342))};
}

TW_INLINE float low_of(unsigned halves) {
  return to_float(Half{static_cast<unsigned short>(halves)});
}
TW_INLINE float to_float(Float8E4M3 x) {
  return low_of(halves_of<Float8E4M3>(x.bits).low);
}
TW_INLINE float to_float(Float8E5M2 x) {
  return low_of(halves_of<Float8E5M2>(x.bits).low);
}

// Two neighbouring numbers of a row.
TW_INLINE void store_pair(float low, float high, Float8E4M3* out) {
  Float8E4M3 pair[2];
  from_float(low, &pair[0]);
  from_float(high, &pair[1]);
  *reinterpret_cast<unsigned short*>(out) =
      static_cast<unsigned short>(pair[0].bits | pair[1].bits << 8);
}

}  // namespace tw_kernel
