#pragma once

#include "attention/one_byte.hpp"
#include "cuda/language.hpp"

// In place of templates/cuda/ptx/convert_e4m3.hpp.

namespace tw_kernel {

TW_INLINE unsigned pack_e4m3(float a, float b, float c, float d) {
  const float numbers[4] = {a, b, c, d};
  unsigned packed = 0;
  for (int i = 0; i < 4; ++i) {
    Float8E4M3 number;
    from_float(numbers[i], &number);
    packed |= static_cast<unsigned>(number.bits) << 8 * i;
  }
  return packed;
}

}  // namespace tw_kernel
