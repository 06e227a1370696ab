#pragma once

#include <cstdint>

namespace tilewright {

// Conversions between float and the bits of the 8-bit formats: to the nearest, ties to even;
// subnormals are kept, NaN stays NaN with its sign, and finite numbers stay finite: one that is too
// large becomes the greatest (448 and 57344). An infinity stays one in f8e5m2 and becomes 448 in
// f8e4m3, which has none.
std::uint8_t float_to_f8e4m3(float value);
float f8e4m3_to_float(std::uint8_t bits);
std::uint8_t float_to_f8e5m2(float value);
float f8e5m2_to_float(std::uint8_t bits);

}  // namespace tilewright
