#pragma once

#include "kernel/language.hpp"

// Rows of a pool [pages, page_size, heads, width] are contiguous.

namespace tw_kernel {

struct KPoolRow {
  static constexpr bool kIsContiguous = true;
  // Elements from a row's first to the one of a column.
  TW_MEMBER static long long at(int column, int) { return column; }
};
using VPoolRow = KPoolRow;

}  // namespace tw_kernel
