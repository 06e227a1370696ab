#include "runtime/io/float16.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Format16 {
  DType dtype;
  std::uint16_t (*from_float)(float);
  float (*to_float)(std::uint16_t);
  std::uint16_t infinity;
};

const Format16 kFormats[] = {{f16, float_to_f16, f16_to_float, 0x7c00},
                             {bf16, float_to_bf16, bf16_to_float, 0x7f80}};

// Counts instead of asserting: 65,536 assertions would take seconds.
int failures_between(const Format16& format, std::uint16_t lower_bits) {
  const auto upper_bits = static_cast<std::uint16_t>(lower_bits + 1);
  const float lower = format.to_float(lower_bits);
  const float middle = static_cast<float>(
      (static_cast<double>(lower) + static_cast<double>(format.to_float(upper_bits))) / 2);
  const std::uint16_t even = lower_bits & 1 ? upper_bits : lower_bits;
  int failures = 0;
  failures += format.from_float(lower) != lower_bits;
  failures += format.from_float(middle) != even;
  failures += format.from_float(-middle) != (even | 0x8000);
  failures += format.from_float(std::nextafterf(middle, -INFINITY)) != lower_bits;
  failures += format.from_float(std::nextafterf(middle, INFINITY)) != upper_bits;
  const double near_middle = std::nextafter(static_cast<double>(middle), kInfinity);
  failures += round_to(format.dtype, middle) != format.to_float(even);
  failures += round_to(format.dtype, near_middle) != format.to_float(upper_bits);
  failures += round_to(format.dtype, -near_middle) != -format.to_float(upper_bits);
  return failures;
}

}  // namespace

TEST_CASE("float16: every value and every midpoint rounds to nearest, ties to even") {
  for (const Format16& format : kFormats) {
    int failures = 0;
    for (std::uint16_t bits = 0; bits + 1 < format.infinity; ++bits) {
      failures += failures_between(format, bits);
    }
    INFO(to_string(format.dtype));
    REQUIRE(failures == 0);
  }
}

TEST_CASE("float16: too large becomes infinity, just below does not") {
  CHECK(float_to_f16(65519.996f) == 0x7bff);
  CHECK(float_to_f16(65520.0f) == 0x7c00);
  CHECK(float_to_f16(-1e30f) == 0xfc00);
  CHECK(float_to_bf16(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(float_to_bf16(0x1.fep127f) == 0x7f7f);
  CHECK(round_to(f16, 65519.999999999) == 65504.0);
  CHECK(round_to(f16, 65520.0) == kInfinity);
  CHECK(round_to(bf16, -1e300) == -kInfinity);
  CHECK(round_to(f32, 1e39) == kInfinity);
}

TEST_CASE("float16: NaN stays NaN with its sign, infinity stays infinity, -0 stays -0") {
  const float nans[] = {std::bit_cast<float>(0x7f800001u), std::bit_cast<float>(0xffc00000u),
                        std::bit_cast<float>(0x7fffffffu)};
  for (const Format16& format : kFormats) {
    for (float nan : nans) {
      const float back = format.to_float(format.from_float(nan));
      CHECK(std::isnan(back));
      CHECK(std::signbit(back) == std::signbit(nan));
    }
    CHECK(format.from_float(-std::numeric_limits<float>::infinity()) == (format.infinity | 0x8000));
    CHECK(std::isinf(format.to_float(format.infinity)));
    CHECK(format.from_float(-0.0f) == 0x8000);
    CHECK(std::signbit(format.to_float(0x8000)));
    CHECK(std::isnan(round_to(format.dtype, std::nan(""))));
  }
}

TEST_CASE("float16: round_to rounds once where rounding through float would round twice") {
  // 1 + 2^-11 is a tie in f16 and the bit far to the right decides; float drops that bit.
  const double value = 1 + 0x1p-11 + 0x1p-40;
  CHECK(round_to(f16, value) == 1 + 0x1p-10);
  CHECK(f16_to_float(float_to_f16(static_cast<float>(value))) == 1.0f);
  std::uint16_t stored = 0;
  write_element(&stored, f16, 0, value);
  CHECK(stored == 0x3c01);
}

TEST_CASE("float16: round_to f32 agrees with the hardware") {
  std::uint64_t state = 1;
  int failures = 0;
  for (int i = 0; i < 200000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    // Random mantissa and sign; exponents from below f32's subnormals to above its range.
    const std::uint64_t exponent = 1023 - 155 + (state >> 33) % 290;
    const double value = std::bit_cast<double>((state & 0x800fffffffffffffu) | exponent << 52);
    const double expected = static_cast<double>(static_cast<float>(value));
    failures += std::bit_cast<std::uint64_t>(round_to(f32, value)) !=
                std::bit_cast<std::uint64_t>(expected);
  }
  CHECK(failures == 0);
}

TEST_CASE("float16: ulp_at is the spacing of the format") {
  CHECK(ulp_at(f16, 1.0) == 0x1p-10);
  CHECK(ulp_at(f16, -1.999) == 0x1p-10);
  CHECK(ulp_at(f16, 2.0) == 0x1p-9);
  CHECK(ulp_at(f16, 0.0) == 0x1p-24);
  CHECK(ulp_at(f16, 65504.0) == 32.0);
  CHECK(ulp_at(f16, kInfinity) == 32.0);
  CHECK(ulp_at(bf16, 1.0) == 0x1p-7);
  CHECK(ulp_at(bf16, 0.0) == 0x1p-133);
  CHECK(ulp_at(f32, 1.0) == 0x1p-23);
  CHECK(ulp_at(f32, 0x1p-149) == 0x1p-149);
  CHECK(ulp_at(i32, 1e9) == 1.0);
}

TEST_CASE("float16: elements of every dtype are written and read back") {
  alignas(8) unsigned char memory[8 * 4] = {};
  for (DType dtype : kAllDTypes) {
    for (std::int64_t i = 0; i < 4; ++i)
      write_element(memory, dtype, i, static_cast<double>(i % 2));
    for (std::int64_t i = 0; i < 4; ++i) {
      CHECK(read_element(memory, dtype, i) == static_cast<double>(i % 2));
    }
  }
}

TEST_CASE("float16: integers round to nearest even and saturate") {
  CHECK(round_to(i32, 2.5) == 2.0);
  CHECK(round_to(i32, 3e9) == 2147483647.0);
  CHECK(round_to(u8, -3.0) == 0.0);
  CHECK(round_to(u8, 256.0) == 255.0);
  CHECK(round_to(i32, std::nan("")) == 0.0);
  CHECK(round_to(boolean, 0.25) == 1.0);
  std::int64_t large = 0;
  write_element(&large, i64, 0, 1e30);
  CHECK(large == std::numeric_limits<std::int64_t>::max());
}

namespace {

// By the definition, with ldexp: slow, and for every magnitude alike.
double rounded_by_definition(int mantissa_bits, int min_exponent, int max_exponent, double value) {
  const int spacing = std::clamp(std::ilogb(value), min_exponent, max_exponent) - mantissa_bits;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -spacing)), spacing);
  return std::abs(rounded) < std::ldexp(1.0, max_exponent + 1) ? rounded
                                                               : std::copysign(INFINITY, value);
}

}  // namespace

TEST_CASE("float16: doubles of every magnitude are rounded as the definition says") {
  std::uint64_t state = 1;
  int differing = 0;
  for (int i = 0; i < 300000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    // Exponents around both formats' ranges; every fifth has few bits, so that ties come up.
    const std::uint64_t exponent = 1023 - 160 + (state >> 33) % 320;
    std::uint64_t bits = (state & 0x800fffffffffffffu) | exponent << 52;
    if (i % 5 == 0) bits &= ~std::uint64_t{0} << (28 + i % 20);
    const double value = std::bit_cast<double>(bits);
    differing += round_to(f16, value) != rounded_by_definition(10, -14, 15, value);
    differing += round_to(bf16, value) != rounded_by_definition(7, -126, 127, value);
    differing += round_to(f32, value) != rounded_by_definition(23, -126, 127, value);
  }
  REQUIRE(differing == 0);
}
