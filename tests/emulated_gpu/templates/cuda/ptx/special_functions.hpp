#pragma once

#include "cuda/language.hpp"

// In place of templates/cuda/ptx/special_functions.hpp. What the special function unit computes
// is less exact than this; numbers below 2^-126 count as 0 there.

namespace tw_math {

TW_INLINE float flush(float x) {
  return std::fabs(x) < 0x1p-126f ? 0.0f * x : x;
}
TW_INLINE float exp2(float x) {
  return flush(std::exp2(flush(x)));
}
TW_INLINE float log2(float x) {
  return std::log2(flush(x));
}
TW_INLINE float tanh(float x) {
  return std::tanh(x);
}
TW_INLINE float sin_of_reduced(float x) {
  return std::sin(flush(x));
}
TW_INLINE float cos_of_reduced(float x) {
  return std::cos(x);
}
TW_INLINE float reciprocal(float x) {
  return 1.0f / flush(x);
}

}  // namespace tw_math
