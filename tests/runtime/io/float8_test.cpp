#include "runtime/io/float8.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Format8 {
  DType dtype;
  std::uint8_t (*from_float)(float);
  float (*to_float)(std::uint8_t);
  int mantissa_bits;
  int bias;
  std::uint8_t greatest;  // code of the greatest finite number
  std::uint8_t infinity;  // what infinity is stored as
};

const Format8 kFormats[] = {
    {f8e4m3, float_to_f8e4m3, f8e4m3_to_float, 3, 7, 0x7e, 0x7e},
    {f8e5m2, float_to_f8e5m2, f8e5m2_to_float, 2, 15, 0x7b, 0x7c},
};

// By the definition of the format: sign, exponent and mantissa.
double value_of(const Format8& format, int code) {
  const int magnitude = code & 0x7f;
  const int exponent = magnitude >> format.mantissa_bits;
  const int mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
  const int unit = 1 - format.bias - format.mantissa_bits;
  const double value =
      exponent == 0 ? std::ldexp(mantissa, unit)
                    : std::ldexp((1 << format.mantissa_bits) + mantissa, unit + exponent - 1);
  return code & 0x80 ? -value : value;
}

}  // namespace

TEST_CASE("float8: each of the 256 codes has the value of its exponent and mantissa") {
  for (const Format8& format : kFormats) {
    INFO(to_string(format.dtype));
    for (int code = 0; code < 256; ++code) {
      const float value = format.to_float(static_cast<std::uint8_t>(code));
      const auto stored = static_cast<std::uint8_t>(code);
      const double read = read_element(&stored, format.dtype, 0);
      const int magnitude = code & 0x7f;
      if (magnitude > format.greatest) {
        const bool is_infinite = format.dtype == f8e5m2 && magnitude == 0x7c;
        CHECK(std::isinf(value) == is_infinite);
        CHECK(std::isnan(value) == !is_infinite);
        CHECK(std::isnan(read) == !is_infinite);
      } else {
        CHECK(static_cast<double>(value) == value_of(format, code));
        CHECK(read == value_of(format, code));
      }
      CHECK(std::signbit(value) == (code >= 0x80));
    }
  }
}

TEST_CASE("float8: each number is stored as itself, and what lies between two as the nearest") {
  for (const Format8& format : kFormats) {
    INFO(to_string(format.dtype));
    for (int code = 0; code <= format.greatest; ++code) {
      INFO(code);
      const auto lower = static_cast<std::uint8_t>(code);
      const float value = format.to_float(lower);
      CHECK(format.from_float(value) == lower);
      CHECK(format.from_float(-value) == (lower | 0x80));
      std::uint8_t written = 0xff;
      write_element(&written, format.dtype, 0, static_cast<double>(value));
      CHECK(written == lower);
      if (code == format.greatest) continue;
      const auto upper = static_cast<std::uint8_t>(code + 1);
      const float middle = (value + format.to_float(upper)) / 2;
      const std::uint8_t even = code % 2 == 0 ? lower : upper;
      CHECK(format.from_float(middle) == even);
      CHECK(format.from_float(-middle) == (even | 0x80));
      CHECK(format.from_float(std::nextafterf(middle, -kInfinity)) == lower);
      CHECK(format.from_float(std::nextafterf(middle, kInfinity)) == upper);
      CHECK(round_to(format.dtype, static_cast<double>(middle)) == value_of(format, even));
      const double above = std::nextafter(static_cast<double>(middle), 1e9);
      CHECK(round_to(format.dtype, above) == value_of(format, upper));
    }
  }
}

TEST_CASE("float8: finite numbers stay finite, NaN stays NaN with its sign") {
  for (const Format8& format : kFormats) {
    INFO(to_string(format.dtype));
    const double greatest = value_of(format, format.greatest);
    for (const float large : {1e5f, 1e30f, std::numeric_limits<float>::max()}) {
      CHECK(format.from_float(large) == format.greatest);
      CHECK(format.from_float(-large) == (format.greatest | 0x80));
      CHECK(round_to(format.dtype, static_cast<double>(-large)) == -greatest);
    }
    CHECK(round_to(format.dtype, 1e300) == greatest);
    CHECK(format.from_float(-kInfinity) == (format.infinity | 0x80));
    CHECK(round_to(format.dtype, static_cast<double>(-kInfinity)) ==
          static_cast<double>(format.to_float(format.infinity | 0x80)));
    CHECK(std::isnan(round_to(format.dtype, std::nan(""))));
    for (const std::uint32_t bits : {0x7fc00000u, 0xff800001u}) {
      const float nan = std::bit_cast<float>(bits);
      CHECK(std::isnan(format.to_float(format.from_float(nan))));
      CHECK(std::signbit(format.to_float(format.from_float(nan))) == std::signbit(nan));
    }
    CHECK(format.from_float(std::numeric_limits<float>::denorm_min()) == 0);
    CHECK(format.from_float(-0.0f) == 0x80);
  }
}

TEST_CASE("float8: random floats are stored as the nearest of all codes") {
  std::uint64_t state = 1;
  int differing = 0;
  for (int i = 0; i < 20000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const float value = std::ldexp(static_cast<float>(state >> 40), static_cast<int>(i % 44) - 42);
    for (const Format8& format : kFormats) {
      int nearest = 0;
      for (int code = 1; code <= format.greatest; ++code) {
        const double distance = std::fabs(value_of(format, code) - static_cast<double>(value));
        const double best = std::fabs(value_of(format, nearest) - static_cast<double>(value));
        if (distance < best || (distance == best && code % 2 == 0)) nearest = code;
      }
      differing += format.from_float(value) != nearest;
      differing += round_to(format.dtype, static_cast<double>(value)) != value_of(format, nearest);
    }
  }
  CHECK(differing == 0);
}

TEST_CASE("float8: i8 holds -128 to 127, rounds ties to even and saturates") {
  for (int value = -128; value < 128; ++value) {
    std::int8_t stored = 0;
    write_element(&stored, i8, 0, value);
    CHECK(stored == value);
    CHECK(read_element(&stored, i8, 0) == value);
  }
  CHECK(round_to(i8, 2.5) == 2);
  CHECK(round_to(i8, -3.5) == -4);
  CHECK(round_to(i8, 127.6) == 127);
  CHECK(round_to(i8, -1e30) == -128);
  CHECK(round_to(i8, std::nan("")) == 0);
}

TEST_CASE("float8: ulp_at is the spacing of the format") {
  CHECK(ulp_at(f8e4m3, 1.0) == 0x1p-3);
  CHECK(ulp_at(f8e4m3, 0.0) == 0x1p-9);
  CHECK(ulp_at(f8e4m3, 448.0) == 32);
  CHECK(ulp_at(f8e5m2, 1.0) == 0x1p-2);
  CHECK(ulp_at(f8e5m2, 0.0) == 0x1p-16);
  CHECK(ulp_at(f8e5m2, 1e9) == 8192);
}
