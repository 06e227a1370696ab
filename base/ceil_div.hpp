#pragma once

#include <cstdint>

namespace tilewright {

/// How many pieces of `size` > 0 it takes to cover `extent` >= 0.
constexpr std::int64_t ceil_div(std::int64_t extent, std::int64_t size) {
  return (extent + size - 1) / size;
}

/// The least multiple of `multiple` > 0 that covers `extent` >= 0.
constexpr std::int64_t round_up(std::int64_t extent, std::int64_t multiple) {
  return ceil_div(extent, multiple) * multiple;
}

}  // namespace tilewright
