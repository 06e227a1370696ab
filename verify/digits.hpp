#pragma once

#include <cmath>

#include "../runtime/io/float16.hpp"

namespace tilewright::verify {

/// The value with the significant bits of `dtype`, as round_to, but without its greatest number:
/// kernels keep in float32 what naive rounds.
inline double round_digits(DType dtype, double value) {
  const double rounded = round_to(dtype, value);
  if (!std::isinf(rounded) || std::isinf(value)) return rounded;
  const int exponent = std::ilogb(value);
  return std::ldexp(round_to(dtype, std::ldexp(value, -exponent)), exponent);
}

}  // namespace tilewright::verify
