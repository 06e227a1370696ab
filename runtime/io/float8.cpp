#include "runtime/io/float8.hpp"

#include <algorithm>
#include <bit>

#include "runtime/io/float16.hpp"

namespace tilewright {
namespace {

struct Format8 {
  unsigned mantissa_bits;  // stored ones
  unsigned bias;           // of the exponent
  unsigned greatest;       // code of the greatest finite number
};

constexpr Format8 kE4M3 = {3, 7, 0x7e};
constexpr Format8 kE5M2 = {2, 15, 0x7b};

// Of a finite magnitude, by integers: whatever modes the thread's arithmetic has.
std::uint32_t code_of(const Format8& format, std::uint32_t magnitude) {
  const std::uint32_t exponent = magnitude >> 23;
  if (exponent + format.bias < 128) {  // below the least normal number: units of its last place
    const std::uint32_t dropped = 151 - format.bias - format.mantissa_bits - exponent;
    if (dropped > 24) return 0;  // below half a unit
    const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t half = 1u << (dropped - 1);
    return (mantissa + half - 1 + (mantissa >> dropped & 1u)) >> dropped;
  }
  const std::uint32_t dropped = 23 - format.mantissa_bits;
  const std::uint32_t rebiased = magnitude - ((127 - format.bias) << 23);
  const std::uint32_t half = 1u << (dropped - 1);
  return std::min((rebiased + half - 1 + (rebiased >> dropped & 1u)) >> dropped, format.greatest);
}

std::uint8_t encoded(const Format8& format, float value, std::uint32_t infinity,
                     std::uint32_t nan) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t code = magnitude > 0x7f800000u    ? nan
                             : magnitude == 0x7f800000u ? infinity
                                                        : code_of(format, magnitude);
  return static_cast<std::uint8_t>(((bits >> 24) & 0x80u) | code);
}

}  // namespace

std::uint8_t float_to_f8e4m3(float value) {
  return encoded(kE4M3, value, kE4M3.greatest, 0x7f);
}

float f8e4m3_to_float(std::uint8_t bits) {
  const std::uint32_t sign = (bits & 0x80u) << 24;
  const std::uint32_t magnitude = bits & 0x7fu;
  if (magnitude == 0x7f) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (magnitude < 8) {
    const float value = static_cast<float>(magnitude) * 0x1p-9f;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 20) + ((127u - 7u) << 23)));
}

std::uint8_t float_to_f8e5m2(float value) {
  return encoded(kE5M2, value, 0x7c, 0x7e);
}

float f8e5m2_to_float(std::uint8_t bits) {
  return f16_to_float(static_cast<std::uint16_t>(bits << 8));
}

}  // namespace tilewright
