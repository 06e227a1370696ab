#pragma once

#include "cpu/element.hpp"
#include "cpu/inline.hpp"
#include "kernel/configuration.hpp"

// Rows of tensors that have fewer columns than a tile's rows: kHeadColumns of kHeadDim, kValueColumns of kValueDim.
// The columns after them are zeros, and are not stored. What is more constrained is chosen before element.hpp's.

namespace tw_kernel {

static_assert(kHeadDim != kValueDim || kHeadColumns == kValueColumns,
              "a tile's columns tell the tensor's");
template <int kCount>
constexpr int kColumnsOf = kCount == kHeadDim ? kHeadColumns : kValueColumns;

template <int kCount, typename Element>
  requires(kCount > 0)
TW_INLINE void load_row(const Element* __restrict from, float* __restrict to) {
  for (int i = 0; i < kColumnsOf<kCount>; ++i) to[i] = to_float(from[i]);
  for (int i = kColumnsOf<kCount>; i < kCount; ++i) to[i] = 0.0f;
}

template <int kCount, typename Element>
  requires(kCount > 0)
TW_INLINE void store_row(const float* __restrict from, Element* __restrict to) {
  for (int i = 0; i < kColumnsOf<kCount>; ++i) from_float(from[i], to + i);
}

}  // namespace tw_kernel
