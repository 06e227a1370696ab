#pragma once

#include "cpu/element.hpp"
#include "cpu/inline.hpp"
#include "cpu/vector.hpp"

// Rows of a tensor as the lanes that the matrix products read.

namespace tw_kernel {

// Rows as lanes of chunks: [chunks][kDim]; lanes past the last row are 0.
template <int kDim, typename Element>
TW_NOINLINE void load_lanes(const Element* rows, long long stride, int count, int chunks,
                            Vector* lanes, float* row) {
  for (int i = 0; i < chunks * kDim; ++i) lanes[i] = Vector{};
  for (int i = 0; i < count; ++i) {
    load_row<kDim>(rows + i * stride, row);
    float* const lane = reinterpret_cast<float*>(lanes + i / kLanes * kDim) + i % kLanes;
    for (int d = 0; d < kDim; ++d) lane[d * kLanes] = row[d];
  }
}

}  // namespace tw_kernel
