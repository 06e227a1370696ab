#pragma once

#include "kernel/builtins.hpp"
#include "kernel/language.hpp"

// Elementary functions on float without a branch or a table, so that a loop around them vectorises.
// docs/math.md states how far each is from the exact value. They need float contraction (FMA) for
// those figures, and only the comparisons of IEEE arithmetic: no errno, no traps, no rounding modes.

namespace tw_math {

TW_INLINE float from_bits(unsigned bits) { return __builtin_bit_cast(float, bits); }
TW_INLINE unsigned to_bits(float x) { return __builtin_bit_cast(unsigned, x); }

// An integer with the value of round(x), |x| < 2^22, and that value as a float.
struct Rounded {
  int integer;
  float value;
};

TW_INLINE Rounded round_to_int(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: the sum's last bit counts ones
  const float shifted = x + kShift;
  return {static_cast<int>(to_bits(shifted) - to_bits(kShift)), shifted - kShift};
}

// x * 2^n for -250 <= n <= 250: two factors, so that a subnormal or infinite result comes out right.
TW_INLINE float scale_by_power(float x, int n) {
  const int half = n >> 1;
  return x * from_bits(static_cast<unsigned>(half + 127) << 23) *
         from_bits(static_cast<unsigned>(n - half + 127) << 23);
}

TW_INLINE float exp2(float x) {
  x = x > 130.0f ? 130.0f : x;
  x = x < -152.0f ? -152.0f : x;
  const Rounded n = round_to_int(x);
  const float f = x - n.value;
  float p = 1.535336345e-4f * f + 1.339887445e-3f;
  p = p * f + 9.618437358e-3f;
  p = p * f + 5.550332471e-2f;
  p = p * f + 2.402264791e-1f;
  p = p * f + 6.931472029e-1f;
  p = p * f + 1.0f;
  return scale_by_power(p, n.integer);
}

// e^r = 1 + r + r^2 * exp_tail(r) for |r| <= ln(2) / 2.
TW_INLINE float exp_tail(float r) {
  float p = 1.381446333e-3f * r + 8.368780447e-3f;
  p = p * r + 4.166839428e-2f;
  p = p * r + 1.666652011e-1f;
  return p * r + 4.999999341e-1f;
}

// x less n * ln(2), exact to twice the precision.
TW_INLINE float reduce_by_ln2(float x, float n) {
  return (x - n * 0.693145751953125f) - n * 1.42860682031e-6f;
}

TW_INLINE float exp(float x) {
  x = x > 90.0f ? 90.0f : x;
  x = x < -105.0f ? -105.0f : x;
  const Rounded n = round_to_int(x * 1.44269504f);
  const float r = reduce_by_ln2(x, n.value);
  const float p = (r * r) * exp_tail(r) + r + 1.0f;
  return scale_by_power(p, n.integer);
}

struct Logarithm {
  float exponent;  // e, a whole number
  float mantissa;  // ln(m), where x = 2^e * m
};

// ln(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)).
TW_INLINE float log_of_mantissa(float f) {
  float p = -7.634136346e-2f * f + 1.276330709e-1f;
  p = p * f - 1.316111558e-1f;
  p = p * f + 1.420159346e-1f;
  p = p * f - 1.662325214e-1f;
  p = p * f + 2.000123007e-1f;
  p = p * f - 2.500082383e-1f;
  p = p * f + 3.333333171e-1f;
  const float f2 = f * f;
  return (f2 * f) * p - 0.5f * f2 + f;
}

// e of bits = 2^e * m, with m in [sqrt(1/2), sqrt(2)).
TW_INLINE int exponent_of(unsigned bits) {
  return static_cast<int>(bits - 0x3f3504f3u) >> 23;
}

TW_INLINE Logarithm split_logarithm(float x) {
  const bool subnormal = x < 1.17549435e-38f;
  const unsigned bits = to_bits(subnormal ? x * 8388608.0f : x);
  const int e = exponent_of(bits);
  const float f = from_bits(bits - (static_cast<unsigned>(e) << 23)) - 1.0f;
  return {static_cast<float>(subnormal ? e - 23 : e), log_of_mantissa(f)};
}

// The logarithms' values outside the positive finite numbers.
TW_INLINE float logarithm_or_special(float x, float logarithm) {
  logarithm = x == 0.0f ? -__builtin_inff() : logarithm;
  logarithm = x == __builtin_inff() ? x : logarithm;
  return x >= 0.0f ? logarithm : __builtin_nanf("");
}

TW_INLINE float log(float x) {
  const Logarithm parts = split_logarithm(x);
  const float low = parts.exponent * 1.42860682031e-6f + parts.mantissa;
  return logarithm_or_special(x, parts.exponent * 0.693145751953125f + low);
}

TW_INLINE float log2(float x) {
  const Logarithm parts = split_logarithm(x);
  const float low = parts.mantissa * 1.925963033e-8f;
  return logarithm_or_special(x, parts.mantissa * 1.44269502f + low + parts.exponent);
}

TW_INLINE float with_sign_of(float magnitude, float sign) {
  return from_bits(to_bits(magnitude) | (to_bits(sign) & 0x80000000u));
}

// ln(1 + x), from 1 + x and what rounding took from it.
TW_INLINE float log1p(float x) {
  const float u = 1.0f + x;
  const float lost = x - (u - 1.0f);
  const unsigned bits = to_bits(u);
  const int e = exponent_of(bits);
  const int scaled = e < 64 ? e : 64;  // nothing was lost of a greater one
  const float f = (from_bits(bits - (static_cast<unsigned>(e) << 23)) - 1.0f) +
                  lost * from_bits(static_cast<unsigned>(127 - scaled) << 23);
  const float exponent = static_cast<float>(e);
  const float low = exponent * 1.42860682031e-6f + log_of_mantissa(f);
  const float value = exponent * 0.693145751953125f + low;
  return with_sign_of(logarithm_or_special(u, value), x);
}

// e^x - 1 = 2^n * (e^r - 1) + (2^n - 1), where half of 2^n is always a float.
TW_INLINE float expm1(float x) {
  float y = x > 89.0f ? 89.0f : x;
  y = y < -25.0f ? -25.0f : y;
  const Rounded n = round_to_int(y * 1.44269504f);
  const float r = reduce_by_ln2(y, n.value);
  const float p = (r * r) * exp_tail(r) + r;
  const float half_power = from_bits(static_cast<unsigned>(n.integer + 126) << 23);
  return with_sign_of(2.0f * (half_power * p + (half_power - 0.5f)), x);
}

// x + x * P(x^2) near 0, 1 - e^(-x - x * Q(x)) beyond.
TW_INLINE float erf(float x) {
  const float a = from_bits(to_bits(x) & 0x7fffffffu);
  const float s = x * x;
  float p = 8.33187806e-5f * s - 8.13363004e-4f;
  p = p * s + 5.20022959e-3f;
  p = p * s - 2.68590730e-2f;
  p = p * s + 1.12836897e-1f;
  p = p * s - 3.76126319e-1f;
  p = p * s + 1.28379166e-1f;
  const float near = p * x + x;
  const float t = a > 4.0f ? 4.0f : a;
  float q = 1.15259345e-5f * t - 3.25755362e-4f;
  q = q * t + 3.65447113e-3f;
  q = q * t - 2.37874947e-2f;
  q = q * t + 1.06266432e-1f;
  q = q * t + 6.35133445e-1f;
  q = q * t + 1.28652900e-1f;
  const float far = with_sign_of(1.0f - exp(-(q * t + t)), x);
  return a > 0.9277f ? far : near;
}

// Of a = |x|: e^(-a^2) * R((a - 2) / (a + 2)) / (1 + 2a), where a^2 is taken to twice the precision.
TW_INLINE float erfc(float x) {
  float a = from_bits(to_bits(x) & 0x7fffffffu);
  a = a > 10.1f ? 10.1f : a;  // beyond, the result is 0
  const float q = (a - 2.0f) / (a + 2.0f);
  float p = -3.99449607e-4f * q - 1.22800237e-3f;
  p = p * q + 1.31330988e-3f;
  p = p * q + 8.63009784e-3f;
  p = p * q - 8.06014333e-3f;
  p = p * q - 5.42038828e-2f;
  p = p * q + 1.64055422e-1f;
  p = p * q - 1.66031465e-1f;
  p = p * q - 9.27639827e-2f;
  p = p * q + 1.27697837f;
  const float factor = p / (1.0f + 2.0f * a);
  const float square = a * a;
  const float lost = __builtin_fmaf(a, a, -square);
  const Rounded n = round_to_int(square * -1.44269504f);
  const float r = reduce_by_ln2(-square, n.value) - lost;
  const float power = (r * r) * exp_tail(r) + r + 1.0f;
  const float value = scale_by_power(power * factor, n.integer);
  return x < 0.0f ? 2.0f - value : value;
}

// From expm1(2|x|), which has no cancellation near 0.
TW_INLINE float tanh(float x) {
  const float magnitude = from_bits(to_bits(x) & 0x7fffffffu);
  const float y = magnitude > 10.0f ? 20.0f : 2.0f * magnitude;
  const Rounded n = round_to_int(y * 1.44269504f);
  const float r = reduce_by_ln2(y, n.value);
  const float p = (r * r) * exp_tail(r) + r;
  const float power = from_bits(static_cast<unsigned>(n.integer + 127) << 23);
  const float expm1 = power * p + (power - 1.0f);
  return from_bits(to_bits(expm1 / (expm1 + 2.0f)) | (to_bits(x) & 0x80000000u));
}

// x = n * pi/2 + r with |r| <= pi/4.
struct Quadrant {
  unsigned n;
  float sin;  // of r
  float cos;
};

TW_INLINE Quadrant split_angle(float x) {
  const Rounded n = round_to_int(x * 0.636619772f);
  float r = x - n.value * 1.57079637f;
  r = r + n.value * 4.37113883e-8f;
  r = r + n.value * 1.71512451e-15f;
  const float r2 = r * r;
  const float s = (-1.951463337e-4f * r2 + 8.332156067e-3f) * r2 - 1.666665454e-1f;
  const float c = (2.443241461e-5f * r2 - 1.388730988e-3f) * r2 + 4.166664555e-2f;
  return {static_cast<unsigned>(n.integer), s * (r2 * r) + r, c * (r2 * r2) - 0.5f * r2 + 1.0f};
}

// sin(q.n * pi/2 + r)
TW_INLINE float sin_of(const Quadrant& q) {
  const float value = (q.n & 1u) != 0 ? q.cos : q.sin;
  return from_bits(to_bits(value) ^ ((q.n & 2u) << 30));
}

TW_INLINE float sin(float x) { return sin_of(split_angle(x)); }

TW_INLINE float cos(float x) {
  Quadrant q = split_angle(x);
  q.n += 1u;
  return sin_of(q);
}

TW_INLINE float tan(float x) {
  const Quadrant q = split_angle(x);
  const float ratio = (q.n & 1u) != 0 ? -q.cos / q.sin : q.sin / q.cos;
  return ratio;
}

}  // namespace tw_math
