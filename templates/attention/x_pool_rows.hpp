#pragma once

#include "kernel/configuration.hpp"
#include "kernel/language.hpp"

// Pools of paged_x. Of a head a page has k as [width / x, page_size, x], where x elements are 16 bytes, and v as
// [width, page_size].

namespace tw_kernel {

template <int kX>
struct XPoolRow {
  static constexpr bool kIsContiguous = false;
  // Elements from a row's first to the one of a column.
  TW_MEMBER static long long at(int column, int page_size) {
    return static_cast<long long>(column / kX) * page_size * kX + column % kX;
  }
};
using KPoolRow = XPoolRow<16 / static_cast<int>(sizeof(KvElement))>;
using VPoolRow = XPoolRow<1>;

}  // namespace tw_kernel
