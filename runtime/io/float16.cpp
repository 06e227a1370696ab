#include "runtime/io/float16.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/float_environment.hpp"
#include "runtime/io/float8.hpp"

namespace tilewright {
namespace {

constexpr double kGreatestE4M3 = 448;
constexpr double kGreatestE5M2 = 57344;

struct Format {
  int mantissa_bits;  // stored ones
  int min_exponent;   // of the smallest normal number
  int max_exponent;   // of the largest finite number
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return {10, -14, 15};
    case DType::bf16:
      return {7, -126, 127};
    case DType::f8e4m3:
      return {3, -6, 8};
    case DType::f8e5m2:
      return {2, -14, 15};
    case DType::f64:
      return {52, -1022, 1023};
    default:
      return {23, -126, 127};
  }
}

// Power of two of the spacing at a finite magnitude.
int spacing_exponent(const Format& format, double magnitude) {
  const int exponent = magnitude == 0 ? format.min_exponent : std::ilogb(magnitude);
  return std::clamp(exponent, format.min_exponent, format.max_exponent) - format.mantissa_bits;
}

// Of a value whose format has all its mantissa bits there: the usual case, on the bits of double.
double round_normal(int mantissa_bits, double value) {
  const int dropped = 52 - mantissa_bits;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t odd = bits >> dropped & 1;
  const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  return std::bit_cast<double>((bits + half - 1 + odd) >> dropped << dropped);
}

// 2^exponent, of a normal double.
double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// Bits of a magnitude; they order as magnitudes do, whatever modes the thread's arithmetic has.
std::uint64_t magnitude_bits(double value) {
  return std::bit_cast<std::uint64_t>(value) & ~(std::uint64_t{1} << 63);
}

double round_floating(DType dtype, double value) {
  const Format format = format_of(dtype);
  const std::uint64_t magnitude = magnitude_bits(value);
  if (magnitude >= magnitude_bits(power_of_two(format.min_exponent)) &&
      magnitude < magnitude_bits(power_of_two(format.max_exponent))) {
    return round_normal(format.mantissa_bits, value);
  }
  const DefaultFloatEnvironment floats;
  if (dtype == DType::f8e4m3 && std::isinf(value)) return std::copysign(kGreatestE4M3, value);
  if (!std::isfinite(value) || value == 0) return value;
  const int spacing = spacing_exponent(format, value);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -spacing)), spacing);
  if (is_float8(dtype)) {
    const double greatest = dtype == DType::f8e4m3 ? kGreatestE4M3 : kGreatestE5M2;
    return std::clamp(rounded, -greatest, greatest);
  }
  const double limit = std::ldexp(1.0, format.max_exponent + 1);
  if (std::abs(rounded) < limit) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

double round_integer(double value, double lowest, double highest) {
  const DefaultFloatEnvironment floats;
  if (std::isnan(value)) return 0;
  return std::clamp(std::nearbyint(value), lowest, highest);
}

template <typename T>
T load(const void* data, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * std::int64_t{sizeof(T)}, sizeof(T));
  return value;
}

template <typename T>
void store(void* data, std::int64_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * std::int64_t{sizeof(T)}, &value, sizeof(T));
}

// 2^63 is the nearest double to the largest i64 and must not be converted.
std::int64_t to_i64(double rounded) {
  return rounded >= 0x1p63 ? std::numeric_limits<std::int64_t>::max()
                           : static_cast<std::int64_t>(rounded);
}

}  // namespace

std::uint16_t float_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {  // NaN: the quiet bit keeps a payload of zeros from being infinity
    return static_cast<std::uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu));
  }
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // >= 65520
  if (magnitude < 0x38800000u) {  // below 2^-14: units of 2^-24
    if (magnitude < 0x33000000u) return static_cast<std::uint16_t>(sign);  // below half a unit
    const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t dropped = 126u - (magnitude >> 23);  // 14 to 24 bits
    const std::uint32_t half = 1u << (dropped - 1);
    const std::uint32_t odd_unit = mantissa >> dropped & 1u;
    return static_cast<std::uint16_t>(sign | (mantissa + half - 1 + odd_unit) >> dropped);
  }
  const std::uint32_t odd = magnitude >> 13 & 1u;
  const std::uint32_t rebiased = magnitude - 0x38000000u;  // exponent bias 127 to 15
  return static_cast<std::uint16_t>(sign | (rebiased + 0xfffu + odd) >> 13);
}

float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u)
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  if (magnitude < 0x400u) {
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
}

std::uint16_t float_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

namespace {

// Exact, and by the bits where a conversion would depend on the thread's modes: subnormal numbers
// may count as 0, and those and signaling NaNs may trap.
double widened(std::uint32_t bits) {
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude - 0x800000u < 0x7f000000u) return static_cast<double>(std::bit_cast<float>(bits));
  const std::uint64_t sign = static_cast<std::uint64_t>(bits & 0x80000000u) << 32;
  if (magnitude >= 0x7f800000u) {
    const std::uint64_t mantissa = static_cast<std::uint64_t>(magnitude & 0x7fffffu) << 29;
    const std::uint64_t quiet = mantissa == 0 ? 0 : std::uint64_t{1} << 51;
    return std::bit_cast<double>(sign | 0x7ff0000000000000u | mantissa | quiet);
  }
  const auto units = static_cast<double>(static_cast<std::int32_t>(magnitude));  // of 2^-149
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(units * 0x1p-149) | sign);
}

// Of what float32 holds.
float narrowed(double value) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  if (magnitude_bits(value) >= magnitude_bits(0x1p-126)) return static_cast<float>(value);
  const auto sign = static_cast<std::uint32_t>(bits >> 32 & 0x80000000u);
  const double units = std::bit_cast<double>(magnitude_bits(value)) * 0x1p149;
  return std::bit_cast<float>(static_cast<std::uint32_t>(units) | sign);
}

}  // namespace

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3:
    case DType::f8e5m2:
      return round_floating(dtype, value);
    case DType::i32:
      return round_integer(value, -0x1p31, 0x1p31 - 1);
    case DType::i64:
      return round_integer(value, -0x1p63, 0x1p63);
    case DType::u8:
      return round_integer(value, 0, 255);
    case DType::boolean:
      return value != 0;
    case DType::i8:
      return round_integer(value, -128, 127);
    case DType::f64:
      return value;
    case DType::i16:
      return round_integer(value, -0x1p15, 0x1p15 - 1);
    case DType::u16:
      return round_integer(value, 0, 0x1p16 - 1);
    case DType::u32:
      return round_integer(value, 0, 0x1p32 - 1);
  }
  return value;
}

double ulp_at(DType dtype, double magnitude) {
  if (!is_floating(dtype)) return 1;
  if (std::isnan(magnitude)) return magnitude;
  const double largest = std::numeric_limits<double>::max();
  return std::ldexp(1.0,
                    spacing_exponent(format_of(dtype), std::min(std::abs(magnitude), largest)));
}

double read_element(const void* data, DType dtype, std::int64_t index) {
  switch (dtype) {
    case DType::f32:
      return widened(load<std::uint32_t>(data, index));
    case DType::f16:
      return static_cast<double>(f16_to_float(load<std::uint16_t>(data, index)));
    case DType::bf16:
      return widened(static_cast<std::uint32_t>(load<std::uint16_t>(data, index)) << 16);
    case DType::i32:
      return load<std::int32_t>(data, index);
    case DType::i64:
      return static_cast<double>(load<std::int64_t>(data, index));
    case DType::u8:
      return load<std::uint8_t>(data, index);
    case DType::boolean:
      return load<std::uint8_t>(data, index) != 0;
    case DType::f8e4m3:
      return static_cast<double>(f8e4m3_to_float(load<std::uint8_t>(data, index)));
    case DType::f8e5m2:
      return static_cast<double>(f8e5m2_to_float(load<std::uint8_t>(data, index)));
    case DType::i8:
      return load<std::int8_t>(data, index);
    case DType::f64:
      return load<double>(data, index);
    case DType::i16:
      return load<std::int16_t>(data, index);
    case DType::u16:
      return load<std::uint16_t>(data, index);
    case DType::u32:
      return load<std::uint32_t>(data, index);
  }
  return 0;
}

void write_element(void* data, DType dtype, std::int64_t index, double value) {
  const double rounded = round_to(dtype, value);
  switch (dtype) {
    case DType::f32:
      return store(data, index, narrowed(rounded));
    case DType::f16:
      return store(data, index, float_to_f16(narrowed(rounded)));
    case DType::bf16:
      return store(data, index, float_to_bf16(narrowed(rounded)));
    case DType::i32:
      return store(data, index, static_cast<std::int32_t>(rounded));
    case DType::i64:
      return store(data, index, to_i64(rounded));
    case DType::u8:
      return store(data, index, static_cast<std::uint8_t>(rounded));
    case DType::boolean:
      return store(data, index, static_cast<std::uint8_t>(rounded));
    case DType::f8e4m3:
      return store(data, index, float_to_f8e4m3(narrowed(rounded)));
    case DType::f8e5m2:
      return store(data, index, float_to_f8e5m2(narrowed(rounded)));
    case DType::i8:
      return store(data, index, static_cast<std::int8_t>(rounded));
    case DType::f64:
      return store(data, index, rounded);
    case DType::i16:
      return store(data, index, static_cast<std::int16_t>(rounded));
    case DType::u16:
      return store(data, index, static_cast<std::uint16_t>(rounded));
    case DType::u32:
      return store(data, index, static_cast<std::uint32_t>(rounded));
  }
}

}  // namespace tilewright
