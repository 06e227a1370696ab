#pragma once

#include <cstdint>

#include "../../generator/spec/dtype.hpp"

namespace tilewright {

// Conversions between float and the bits of the 16-bit formats: to the nearest, ties to even; too
// large becomes infinity, subnormals are kept, and NaN stays NaN (its sign and upper payload kept).
std::uint16_t float_to_f16(float value);
float f16_to_float(std::uint16_t bits);
std::uint16_t float_to_bf16(float value);
float bf16_to_float(std::uint16_t bits);

/// The value of `dtype` that is nearest to `value`, ties to even, rounded once. f32, f16 and bf16
/// overflow to infinity, the 8-bit formats to their greatest number (float8.hpp); integers saturate
/// and read NaN as 0; bool is 1 for all but 0.
double round_to(DType dtype, double value);

/// Distance from `magnitude` (sign ignored) to the next larger value of `dtype`, for a magnitude
/// that lies between two of them: the spacing there. Below the smallest normal number it is the
/// smallest subnormal, from the largest finite number on it is the spacing of the last binade.
/// Integers: 1.
double ulp_at(DType dtype, double magnitude);

/// The element at `index` of a contiguous array. Exact, but for i64 beyond 2^53.
double read_element(const void* data, DType dtype, std::int64_t index);

/// Stores round_to(dtype, value) as the element at `index` of a contiguous array.
void write_element(void* data, DType dtype, std::int64_t index, double value);

}  // namespace tilewright
