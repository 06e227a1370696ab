#pragma once

#include <cmath>
#include <limits>

namespace tilewright {

/// The number, but NaN without its sign, which fmt and printf would print as "-nan".
inline double printable(double number) {
  return std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number;
}

}  // namespace tilewright
