#pragma once

#include "kernel/language.hpp"
#include "snippet/floating.hpp"

// The cell of a dimension that an index reads: the nearest of 0 to `last`, and 0 for a NaN. A float
// loses its fraction. It becomes an integer before it is compared with `last`: beyond 2^24 a float
// need not hold that bound.

namespace tw_snippet {

template <typename Index>
TW_INLINE int tw_cell(Index i, int last) {
  const auto index = +i;  // at least an int
  if constexpr (tw_is_floating<decltype(+i)>) {
    const auto positive = index > 0 ? index : decltype(+i){0};
    const bool is_beyond_int = positive >= 2147483648.0f;
    const int whole = static_cast<int>(is_beyond_int ? decltype(+i){0} : positive);
    return is_beyond_int || whole > last ? last : whole;
  } else {
    return index < 0 ? 0 : index > last ? last : static_cast<int>(index);
  }
}

}  // namespace tw_snippet
