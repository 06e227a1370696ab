#pragma once

#include "kernel/element.hpp"
#include "kernel/language.hpp"

// How a number of one dtype is stored in another: rounded, and finite numbers stay finite.

namespace tw_kernel {

TW_INLINE constexpr float greatest_stored(const Half*) { return 65504.0f; }
TW_INLINE constexpr float greatest_stored(const BFloat16*) {
  return __builtin_bit_cast(float, 0x7f7f0000u);
}
TW_INLINE constexpr float greatest_stored(const float*) {
  return __builtin_bit_cast(float, 0x7f7fffffu);
}

template <typename From, typename To>
TW_INLINE void store_number(From from, To* to) {
  const float x = to_float(from), limit = greatest_stored(to);
  const bool is_finite = x - x == 0.0f;
  const float inside = x > limit ? limit : x < -limit ? -limit : x;
  from_float(is_finite ? inside : x, to);
}
template <typename Element>
TW_INLINE void store_number(Element from, Element* to) {
  *to = from;
}

// The same divided by a scale, or by none.
struct NoScale {};
template <typename From, typename To>
TW_INLINE void store_scaled(From from, NoScale, To* to) {
  store_number(from, to);
}
// To the nearest, whatever a kernel's divisions are compiled to.
TW_INLINE float quotient_of(float x, float divisor) {
#ifdef __CUDACC__
  return __fdiv_rn(x, divisor);
#else
  return x / divisor;
#endif
}
template <typename From, typename To>
TW_INLINE void store_scaled(From from, float scale, To* to) {
  store_number(quotient_of(to_float(from), scale), to);
}

}  // namespace tw_kernel
