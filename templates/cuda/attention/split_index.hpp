#pragma once

#include "cuda/language.hpp"

// Indices of elements as score_mod takes them.

namespace tw_kernel {

// An index as a base and an offset.
struct SplitIndex {
  int base;
  int offset;
  __forceinline__ int value() const { return base + offset; }
};

// An index as score_mod takes it: an int, or with its base's distance from the tile's first column,
// `origin` (cuda/snippet/index.hpp).
template <typename Index>
TW_INLINE Index make_index(const SplitIndex& index, int origin) {
  return {index.base, index.offset, static_cast<float>(index.base - origin)};
}
template <>
int make_index<int>(const SplitIndex& index, int) {
  return index.value();
}

}  // namespace tw_kernel
