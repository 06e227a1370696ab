#pragma once

#include "cpu/inline.hpp"
#include "math/common.hpp"
#include "interpretations/checked.hpp"
#include "snippet/floating.hpp"

// A snippet's `floor_div` and `floor_mod` (see interpretation.cpp): as in math/common.hpp, and they know the
// line that calls them. A division that would trap is reported and ends the element, as `/` does.

namespace tw_snippet {

template <typename A, typename B>
TW_INLINE void tw_check_division(A a, B b, int line) {
  using T = decltype(+a + +b);
  if constexpr (!tw_is_floating<T>) {
    const T x = static_cast<T>(a), y = static_cast<T>(b);
    constexpr bool kIsSigned = static_cast<T>(-1) < 0;
    constexpr long long kLeast = sizeof(T) > sizeof(int) ? -__LONG_LONG_MAX__ - 1 : -__INT_MAX__ - 1;
    const bool overflows = kIsSigned && x == static_cast<T>(kLeast) && y == static_cast<T>(-1);
    if (y != 0 && !overflows) return;
    tw_report(y == 0 ? Finding::division_by_zero : Finding::division_overflow, line, 0,
              static_cast<long long>(x), static_cast<long long>(y));
    tw_abandon_element();
  }
}

template <typename A, typename B>
TW_INLINE auto tw_floor_div(A a, B b, int line = __builtin_LINE()) {
  tw_check_division(a, b, line);
  return floor_div(a, b);
}
template <typename A, typename B>
TW_INLINE auto tw_floor_mod(A a, B b, int line = __builtin_LINE()) {
  tw_check_division(a, b, line);
  return floor_mod(a, b);
}

}  // namespace tw_snippet
